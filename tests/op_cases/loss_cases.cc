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
                      {Fixed(loss, Uniform(0.5, 2)), Fixed({rows, classes}, logits), labels.operand,
                       Fixed({rows}, Computed("softmax_cross_entropy", 1, {1, 2}))},
                      {F32({rows, classes})}};
      backward.low = false;
      cases.push_back(backward);
    }
  }
}

void AddMse(std::vector<OpCase>& cases) {
  for (const char* reduction : {"none", "mean", "sum"}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{8, 10}, Shape{3, 2, 5}, Shape{4, 4099}}) {
      const Attributes attributes = {{"reduction", std::string(reduction)}};
      const Shape loss = std::string(reduction) == "none" ? shape : Shape{};
      const std::string tail = absl::StrCat("/", ShapeToString(shape), "_", reduction);
      OpCase forward{"mse" + tail, "mse", attributes, {Variable(shape), Variable(shape)}, {F32(loss)}};
      forward.low = false;
      cases.push_back(forward);
      OpCase backward{"mse_grad" + tail,
                      "mse_grad",
                      attributes,
                      {Fixed(loss, Uniform(0.5, 2)), Fixed(shape), Fixed(shape)},
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
  AddCrossEntropy(cases, 5, 7, Normal(500, 30), "_large_logits");
  OpCase out_of_range{"softmax_cross_entropy/label_out_of_range",
                      "softmax_cross_entropy",
                      {{"reduction", std::string("none")}},
                      {Fixed({4, 3}), {I32({4}), List({0, 3, -1, 2})}},
                      {F32({4}), F32({4})}};
  out_of_range.low = false;
  cases.push_back(out_of_range);
  AddMse(cases);
  return cases;
}

}  // namespace mpc::op_cases
