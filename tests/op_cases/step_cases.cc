#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

OperandCase Flag(bool value) { return {Bool({}), List({value ? 1.0 : 0.0})}; }
OperandCase Count(double value) { return {I32({}), List({value})}; }

void AddExact(std::vector<OpCase>& cases, const std::string& name, const std::string& op, const Attributes& attributes,
              const std::vector<OperandCase>& operands, const TensorSpec& result) {
  OpCase op_case{absl::StrCat(op, "/", name), op, attributes, operands, {result}};
  op_case.low = false;
  cases.push_back(op_case);
}

void AddScaleLoss(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 1030}}) {
    OpCase op_case{absl::StrCat("scale_loss/", ShapeToString(shape)),
                   "scale_loss",
                   {},
                   {Variable(shape), {F32({}), List({1024})}},
                   {F32(shape)}};
    op_case.low = false;
    cases.push_back(op_case);
  }
}

void AddFlags(std::vector<OpCase>& cases) {
  for (const char* op : {"all_of", "any_of"}) {
    AddExact(cases, "true", op, {}, {Flag(true)}, Bool({}));
    AddExact(cases, "false", op, {}, {Flag(false)}, Bool({}));
    AddExact(cases, "mixed", op, {}, {Flag(true), Flag(false), Flag(true)}, Bool({}));
    AddExact(cases, "all_true", op, {}, {Flag(true), Flag(true)}, Bool({}));
    AddExact(cases, "all_false", op, {}, {Flag(false), Flag(false)}, Bool({}));
  }
  AddExact(cases, "finite", "merge_checks", {}, {Count(-1), Count(-1)}, I32({}));
  AddExact(cases, "loss_alone", "merge_checks", {}, {Count(-1), Count(-2)}, I32({}));
  AddExact(cases, "first_gradient", "merge_checks", {}, {Count(0), Count(-2)}, I32({}));
  AddExact(cases, "largest_position", "merge_checks", {}, {Count(-1), Count(3), Count(7), Count(-2)}, I32({}));
}

void AddNorms(std::vector<OpCase>& cases) {
  cases.push_back({"global_norm/one", "global_norm", {}, {Fixed({7})}, {F32({})}, true, {}, {0}});
  cases.push_back({"global_norm/several",
                   "global_norm",
                   {},
                   {Fixed({3, 5}), Fixed({}), Fixed({9001}), Fixed({2, 2, 3, 3}, Normal(0, 8))},
                   {F32({})},
                   true,
                   {},
                   {0}});
  cases.push_back({"global_norm/unscaled",
                   "global_norm",
                   {{"unscale", true}},
                   {{F32({}), List({0.3})}, Fixed({3, 5}), Fixed({9001})},
                   {F32({})},
                   true,
                   {0},
                   {0}});
  cases.push_back({"global_norm/zeros", "global_norm", {}, {Fixed({4}, List({0}))}, {F32({})}, true, {}, {0}});
  cases.push_back(
      {"global_norm/infinite", "global_norm", {}, {Fixed({4}, List({1, kInfinity}))}, {F32({})}, true, {}, {0}});
  cases.push_back({"global_norm/with_sums",
                   "global_norm",
                   {{"sums", std::int64_t{2}}},
                   {Fixed({3, 5}), Fixed({9001}), {F32({}), List({17.5})}, {F32({}), List({0.25})}},
                   {F32({})},
                   true,
                   {2, 3},
                   {0}});
  cases.push_back({"global_norm/unscaled_with_sums",
                   "global_norm",
                   {{"unscale", true}, {"sums", std::int64_t{1}}},
                   {{F32({}), List({0.3})}, Fixed({35}), {F32({}), List({3})}},
                   {F32({})},
                   true,
                   {0, 2},
                   {0}});
  cases.push_back({"global_norm/sums_alone",
                   "global_norm",
                   {{"sums", std::int64_t{2}}},
                   {{F32({}), List({9})}, {F32({}), List({16})}},
                   {F32({})},
                   false});
  for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{300, 37}, Shape{9001}}) {
    cases.push_back({absl::StrCat("sum_of_squares/", ShapeToString(shape)),
                     "sum_of_squares",
                     {},
                     {Fixed(shape)},
                     {F32({})},
                     true,
                     {},
                     {0}});
    cases.push_back({absl::StrCat("sum_of_squares/unscaled_", ShapeToString(shape)),
                     "sum_of_squares",
                     {},
                     {Fixed(shape, Normal(0, 8)), {F32({}), List({0.3})}},
                     {F32({})},
                     true,
                     {1},
                     {0}});
  }
  cases.push_back(
      {"sum_of_squares/infinite", "sum_of_squares", {}, {Fixed({4}, List({1, kInfinity}))}, {F32({})}, true, {}, {0}});
  for (double norm : {0.0, 0.5, 1.0, 3.0, 1e30, kInfinity, kNaN}) {
    cases.push_back({absl::StrCat("clip_by_norm/norm_", norm),
                     "clip_by_norm",
                     {{"max_norm", 1.0}},
                     {Fixed({1027}), {F32({}), List({norm})}},
                     {F32({1027})},
                     true,
                     {1},
                     {0}});
  }
}

void AddAccumulation(std::vector<OpCase>& cases) {
  for (double micro_step : {0.0, 2.0}) {
    for (const char* guard : {"", "_taken", "_skipped"}) {
      const std::string form = absl::StrCat("micro_step_", micro_step, guard);
      std::vector<OperandCase> predicate;
      if (*guard != 0) predicate.push_back(Flag(std::string_view(guard) == "_taken"));
      for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{4099}}) {
        OpCase op_case{absl::StrCat("accumulate_gradient/", form, "_", ShapeToString(shape)),
                       "accumulate_gradient",
                       {{"count", 3}},
                       {Fixed(shape), Fixed(shape), Count(micro_step)},
                       {F32(shape)},
                       true,
                       {0},
                       {0}};
        op_case.operands.insert(op_case.operands.end(), predicate.begin(), predicate.end());
        cases.push_back(op_case);
      }
      std::vector<OperandCase> operands{Count(micro_step)};
      operands.insert(operands.end(), predicate.begin(), predicate.end());
      AddExact(cases, form, "next_micro_step", {{"count", 3}}, operands, I32({}));
    }
  }
  // What an overflow left in the sum ends with the micro-steps that it belongs to.
  cases.push_back({"accumulate_gradient/starts_afresh",
                   "accumulate_gradient",
                   {{"count", 2}},
                   {Fixed({4}, List({kNaN, kInfinity})), Fixed({4}), Count(0)},
                   {F32({4})},
                   true,
                   {0},
                   {0}});
}

void AddStatistics(std::vector<OpCase>& cases) {
  const auto add = [&](const char* name, const Shape& shape, const Values& values) {
    OpCase op_case{absl::StrCat("tensor_statistics/", name),
                   "tensor_statistics",
                   {},
                   {Fixed(shape, values)},
                   {I32({256}), I32({}), F32({})}};
    op_case.f32_results = {2};
    cases.push_back(op_case);
  };
  add("normal", {3, 1000}, Normal());
  add("many_blocks", {150001}, Normal(0, 100));
  add("scalar", {}, List({-1.5}));
  add("special", {12}, List({0, -0.0, 1e-40, 6e-8, 1, 1.999, 2, -65504, 1e30, kInfinity, -kInfinity, kNaN}));
  add("nothing_finite", {2}, List({kNaN, kInfinity}));
}

}  // namespace

std::vector<OpCase> StepCases() {
  std::vector<OpCase> cases;
  AddScaleLoss(cases);
  AddFlags(cases);
  AddNorms(cases);
  AddAccumulation(cases);
  AddStatistics(cases);
  return cases;
}

}  // namespace mpc::op_cases
