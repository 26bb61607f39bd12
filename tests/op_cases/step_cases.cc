#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

TensorSpec F64() { return {DType::kF64, {}}; }
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

// Finite gradients whose squares overflow f32, and whose norm does.
Values Large() { return List({2e19, -3e19, 1e38, -3e38, 3e38, 1, 1e-30}); }

// `result` is the type of the norm: f64, or f32 in Programs that were made before it was.
void AddGlobalNorms(std::vector<OpCase>& cases, const TensorSpec& result) {
  const auto add = [&](const char* name, const Attributes& attributes, std::vector<OperandCase> operands,
                       std::vector<std::size_t> scalars, bool low = true) {
    cases.push_back({absl::StrCat("global_norm/", name, "_", std::string(DTypeName(result.dtype))),
                     "global_norm",
                     attributes,
                     std::move(operands),
                     {result},
                     low,
                     std::move(scalars),
                     {0}});
  };
  const auto scalar = [&](double value) { return OperandCase{{result.dtype, {}}, List({value})}; };
  add("one", {}, {Fixed({7})}, {});
  add("several", {}, {Fixed({3, 5}), Fixed({}), Fixed({9001}), Fixed({2, 2, 3, 3}, Normal(0, 8))}, {});
  add("unscaled", {{"unscale", true}}, {{F32({}), List({0.3})}, Fixed({3, 5}), Fixed({9001})}, {0});
  add("zeros", {}, {Fixed({4}, List({0}))}, {});
  add("infinite", {}, {Fixed({4}, List({1, kInfinity}))}, {});
  add("with_sums", {{"sums", std::int64_t{2}}}, {Fixed({3, 5}), Fixed({9001}), scalar(17.5), scalar(0.25)}, {2, 3});
  add("unscaled_with_sums", {{"unscale", true}, {"sums", std::int64_t{1}}},
      {{F32({}), List({0.3})}, Fixed({35}), scalar(3)}, {0, 2});
  add("sums_alone", {{"sums", std::int64_t{2}}}, {scalar(9), scalar(16)}, {}, false);
  add("large", {}, {Fixed({7}, Large()), Fixed({9001}, Large())}, {}, false);
  add("large_unscaled", {{"unscale", true}}, {{F32({}), List({1024})}, Fixed({70}, Large())}, {}, false);
  add("beyond_f32_squared", {}, {Fixed({3}, List({2e19, 1, -1}))}, {}, false);
}

void AddNorms(std::vector<OpCase>& cases) {
  AddGlobalNorms(cases, F64());
  AddGlobalNorms(cases, F32({}));
  for (const TensorSpec& result : {F64(), F32({})}) {
    const auto add = [&](const std::string& name, std::vector<OperandCase> operands, bool low = true) {
      OpCase op_case{absl::StrCat("sum_of_squares/", name, "_", std::string(DTypeName(result.dtype))),
                     "sum_of_squares",
                     {},
                     std::move(operands),
                     {result},
                     low,
                     {},
                     {0}};
      if (op_case.operands.size() > 1) op_case.f32_operands = {1};
      cases.push_back(op_case);
    };
    for (const Shape& shape : {Shape{1}, Shape{3, 5}, Shape{300, 37}, Shape{9001}}) {
      add(ShapeToString(shape), {Fixed(shape)});
      add(absl::StrCat("unscaled_", ShapeToString(shape)), {Fixed(shape, Normal(0, 8)), {F32({}), List({0.3})}});
    }
    add("infinite", {Fixed({4}, List({1, kInfinity}))});
    add("large", {Fixed({9001}, Large())}, false);
    add("large_unscaled", {Fixed({9001}, Large()), {F32({}), List({1024})}}, false);
  }
  for (const TensorSpec& norm_type : {F64(), F32({})}) {
    for (double norm : {0.0, 0.5, 1.0, 3.0, 1e30, 1e60, kInfinity, kNaN}) {
      // f32 has no 1e60.
      if (norm == 1e60 && norm_type.dtype == DType::kF32) continue;
      cases.push_back({absl::StrCat("clip_by_norm/norm_", norm, "_", std::string(DTypeName(norm_type.dtype))),
                       "clip_by_norm",
                       {{"max_norm", 1.0}},
                       {Fixed({1027}), {norm_type, List({norm})}},
                       {F32({1027})},
                       true,
                       {1},
                       {0}});
    }
  }
  // A factor that f32 still has all digits of.
  cases.push_back({"clip_by_norm/large",
                   "clip_by_norm",
                   {{"max_norm", 1.0}},
                   {Fixed({7}, List({2e19, -3e19, 3e37, 1, 0})), {F64(), List({6e37})}},
                   {F32({7})},
                   false});
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
  // Level 1 of four micro-steps starts, keeps, takes the place of the first two, and adds the last two.
  for (double micro_step : {0.0, 1.0, 2.0, 3.0}) {
    const std::string name = absl::StrCat("accumulate_gradient/level_1_of_micro_step_", micro_step);
    cases.push_back({name,
                     "accumulate_gradient",
                     {{"count", 4}, {"level", 1}},
                     {Fixed({3, 5}), Fixed({3, 5}), Count(micro_step)},
                     {F32({3, 5})},
                     true,
                     {0},
                     {0}});
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
