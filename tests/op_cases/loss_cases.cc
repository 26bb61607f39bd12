#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

struct Labels {
  const char* name;
  OperandCase operand;
};

std::vector<Labels> LabelsOf(std::int64_t rows, std::int64_t classes) {
  return {{"one_hot", Fixed({rows, classes}, OneHot())},
          {"soft", Fixed({rows, classes}, Uniform(0, 0.3))},  // sums differ from 1
          {"i32", {I32({rows}), Integers(0, classes)}},
          {"i64", {I64({rows}), Integers(0, classes)}}};
}

void AddCrossEntropy(std::vector<OpCase>& cases, std::int64_t rows, std::int64_t classes, const Values& logits,
                     const char* note) {
  for (const char* reduction : {"none", "mean", "sum"}) {
    const Attributes attributes = {{"reduction", std::string(reduction)}};
    const Shape loss = std::string(reduction) == "none" ? Shape{rows} : Shape{};
    for (const Labels& labels : LabelsOf(rows, classes)) {
      const std::string tail = absl::StrCat("/", rows, "x", classes, "_", labels.name, "_", reduction, note);
      OpCase forward{"softmax_cross_entropy" + tail,
                     "softmax_cross_entropy",
                     attributes,
                     {Variable({rows, classes}, logits), labels.operand},
                     {F32(loss), F32({rows})}};
      forward.low = false;  // losses read and write f32 at every level
      cases.push_back(forward);
      OpCase backward{"softmax_cross_entropy_grad" + tail,
                      "softmax_cross_entropy_grad",
                      attributes,
                      {Variable(loss, Uniform(0.5, 2)), Variable({rows, classes}, logits), labels.operand,
                       Variable({rows}, Computed("softmax_cross_entropy", 1, {1, 2}))},
                      {F32({rows, classes})}};
      // The loss refuses derivatives by its labels. The gradient has them.
      backward.operands[2].differentiable = IsFloating(labels.operand.spec.dtype);
      backward.low = false;
      cases.push_back(backward);
    }
  }
}

// Rows that are longer than their classes. What lies behind these is drawn as the classes are, or NaN.
void AddPaddedCrossEntropy(std::vector<OpCase>& cases, std::int64_t rows, std::int64_t columns, std::int64_t classes) {
  for (const char* reduction : {"none", "mean"}) {
    const Attributes attributes = {{"reduction", std::string(reduction)}, {"classes", classes}};
    const Shape loss = std::string(reduction) == "none" ? Shape{rows} : Shape{};
    const std::string tail = absl::StrCat("/", rows, "x", classes, "_of_", columns, "_", reduction);
    const OperandCase labels{I32({rows}), Integers(0, classes)};
    OpCase forward{"softmax_cross_entropy" + tail,
                   "softmax_cross_entropy",
                   attributes,
                   {Variable({rows, columns}), labels},
                   {F32(loss), F32({rows})}};
    forward.low = false;
    cases.push_back(forward);
    OpCase backward{"softmax_cross_entropy_grad" + tail,
                    "softmax_cross_entropy_grad",
                    attributes,
                    {Variable(loss, Uniform(0.5, 2)), Variable({rows, columns}), labels,
                     Variable({rows}, Computed("softmax_cross_entropy", 1, {1, 2}))},
                    {F32({rows, columns})}};
    backward.low = false;
    cases.push_back(backward);
  }
}

OpCase UnreadLogits() {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  OpCase one{"softmax_cross_entropy/nan_behind_classes",
             "softmax_cross_entropy",
             {{"reduction", std::string("none")}, {"classes", std::int64_t{3}}},
             {Fixed({2, 4}, List({0, 1, 2, kNan, 1, 0, -1, kNan})), {I32({2}), List({2, 3})}},
             {F32({2}), F32({2})}};
  one.low = false;
  return one;
}

// Losses of one element of two operands of one shape.
void AddElementLoss(std::vector<OpCase>& cases, const std::string& op, const Values& first, const OperandCase& second) {
  for (const char* reduction : {"none", "mean", "sum"}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{8, 10}, Shape{3, 2, 5}, Shape{4, 4099}}) {
      const Attributes attributes = {{"reduction", std::string(reduction)}};
      const Shape loss = std::string(reduction) == "none" ? shape : Shape{};
      const std::string tail = absl::StrCat("/", ShapeToString(shape), "_", reduction);
      const OperandCase target{F32(shape), second.values, second.differentiable};
      OpCase forward{op + tail, op, attributes, {Variable(shape, first), target}, {F32(loss)}};
      forward.low = false;
      cases.push_back(forward);
      OpCase backward{op + "_grad" + tail,
                      op + "_grad",
                      attributes,
                      {Variable(loss, Uniform(0.5, 2)), Variable(shape, first), Variable(shape, second.values)},
                      {F32(shape)}};
      backward.low = false;
      cases.push_back(backward);
    }
  }
}

}  // namespace

std::vector<OpCase> LossCases() {
  std::vector<OpCase> cases;
  AddCrossEntropy(cases, 1, 1, Normal(), "");
  AddCrossEntropy(cases, 29, 10, Normal(), "");
  AddCrossEntropy(cases, 3, 1000, Normal(), "");
  AddCrossEntropy(cases, 2, 1608, Normal(), "");  // beyond a warp's registers
  AddCrossEntropy(cases, 2, 8203, Normal(), "");  // beyond a block's
  AddCrossEntropy(cases, 2, 8216, Normal(), "");
  AddCrossEntropy(cases, 5, 7, Normal(500, 30), "_large_logits");
  AddPaddedCrossEntropy(cases, 29, 16, 10);
  AddPaddedCrossEntropy(cases, 3, 1008, 1003);
  AddPaddedCrossEntropy(cases, 2, 8208, 8203);  // beyond a block's registers
  AddPaddedCrossEntropy(cases, 3, 27, 24);      // rows that begin anywhere
  AddPaddedCrossEntropy(cases, 2, 8, 1);
  cases.push_back(UnreadLogits());
  OpCase out_of_range{"softmax_cross_entropy/label_out_of_range",
                      "softmax_cross_entropy",
                      {{"reduction", std::string("none")}},
                      {Fixed({4, 3}), {I32({4}), List({0, 3, -1, 2})}},
                      {F32({4}), F32({4})}};
  out_of_range.low = false;
  cases.push_back(out_of_range);
  AddElementLoss(cases, "mse", Normal(), Variable({}));
  AddElementLoss(cases, "bce_with_logits", Normal(0, 3), Fixed({}, Uniform(0, 1)));
  OpCase saturated{"bce_with_logits/saturated",
                   "bce_with_logits",
                   {{"reduction", std::string("none")}},
                   {Fixed({6}, List({100, -100, 30, -30, 1e-6, -1e4})), Fixed({6}, List({1, 0, 0, 1, 0.5, 0}))},
                   {F32({6})}};
  saturated.low = false;
  cases.push_back(saturated);
  return cases;
}

}  // namespace mpc::op_cases
