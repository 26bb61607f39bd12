#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

void AddUnscale(std::vector<OpCase>& cases) {
  for (double scale : {0.25, 3.0, 65536.0}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 5}, Shape{4099}}) {
      OpCase op_case{absl::StrCat("unscale/", ShapeToString(shape), "_by_", scale),
                     "unscale",
                     {},
                     {Variable(shape), {F32({}), List({scale})}},
                     {F32(shape)}};
      op_case.f32_operands = {1};
      op_case.f32_results = {0};
      cases.push_back(op_case);
    }
  }
}

void AddFiniteCheck(std::vector<OpCase>& cases, const std::string& name, double scale, double loss,
                    const std::vector<OperandCase>& gradients) {
  OpCase op_case{
      "all_finite/" + name, "all_finite", {}, {{F32({}), List({scale})}, {F32({}), List({loss})}}, {Bool({}), I32({})}};
  op_case.operands.insert(op_case.operands.end(), gradients.begin(), gradients.end());
  op_case.f32_operands = {0, 1};
  cases.push_back(op_case);
}

void AddFiniteChecks(std::vector<OpCase>& cases) {
  for (std::int64_t size : {1, 7, 64, 1027, 65537}) {
    const OperandCase good = Fixed({size});
    AddFiniteCheck(cases, absl::StrCat("finite_", size), 1024, 2.5, {good, good});
    for (double bad : {kInfinity, -kInfinity, kNaN}) {
      for (std::int64_t position : std::set<std::int64_t>{0, size / 2, size - 1}) {
        std::vector<double> values(static_cast<std::size_t>(size), 0.5);
        values[static_cast<std::size_t>(position)] = bad;
        AddFiniteCheck(cases, absl::StrCat(bad, "_at_", position, "_of_", size), 1024, 2.5,
                       {good, Fixed({size}, List(values)), good});
      }
    }
  }
  const OperandCase good = Fixed({5});
  const OperandCase bad = Fixed({5}, List({1, kNaN, 2}));
  AddFiniteCheck(cases, "first_of_two_bad", 1, 1, {good, bad, bad});
  AddFiniteCheck(cases, "loss_alone", 1, kNaN, {good, good});
  AddFiniteCheck(cases, "loss_and_gradient", 1, kInfinity, {good, bad});
  AddFiniteCheck(cases, "no_gradients", 1, 1, {});
  std::vector<OperandCase> many(200, good);  // more than one kernel launch takes
  AddFiniteCheck(cases, "many_gradients", 1, 1, many);
  many[197] = bad;
  AddFiniteCheck(cases, "many_gradients_one_bad", 1, 1, many);
  OpCase overflow{"all_finite/unscaling_overflows",
                  "all_finite",
                  {},
                  {{F32({}), List({0.25})}, {F32({}), List({1})}, Fixed({3}), Fixed({3}, List({3e38, 1, 1}))},
                  {Bool({}), I32({})}};
  overflow.low = false;
  cases.push_back(overflow);
  OpCase mixed{"all_finite/mixed_types",
               "all_finite",
               {},
               {{F32({}), List({8})},
                {F32({}), List({1})},
                Fixed({19}),
                {{DType::kF16, {7}}, Normal()},
                {{DType::kBF16, {7}}, List({1, kInfinity})}},
               {Bool({}), I32({})}};
  mixed.low = false;
  cases.push_back(mixed);
}

OpCase CheckOfOne(const std::string& name, double scale, const OperandCase& gradient) {
  OpCase op_case{"check_finite/" + name, "check_finite", {}, {gradient, {F32({}), List({scale})}}, {Bool({})}};
  op_case.f32_operands = {1};
  return op_case;
}

// The part of one gradient, and flags in the place of gradients; a norm in f64.
void AddFinitePart(std::vector<OpCase>& cases) {
  for (double norm : {0.0, 3.0, 1e60, kInfinity, -kInfinity, kNaN}) {
    OpCase op_case = CheckOfOne(absl::StrCat("norm_", norm), 1, {{DType::kF64, {}}, List({norm})});
    op_case.low = false;
    cases.push_back(op_case);
  }
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 5}, Shape{65537}, Shape{300, 37}}) {
    const std::int64_t size = NumElements(shape);
    const std::string what = ShapeToString(shape);
    cases.push_back(CheckOfOne(absl::StrCat("finite_", what), 1024, Fixed(shape)));
    for (double bad : {kInfinity, -kInfinity, kNaN}) {
      for (std::int64_t position : std::set<std::int64_t>{0, size / 2, size - 1}) {
        std::vector<double> values(static_cast<std::size_t>(size), 0.5);
        values[static_cast<std::size_t>(position)] = bad;
        cases.push_back(
            CheckOfOne(absl::StrCat(bad, "_at_", position, "_of_", what), 1024, Fixed(shape, List(values))));
      }
    }
  }
  OpCase overflow = CheckOfOne("unscaling_overflows", 0.25, Fixed({3}, List({1, 3e38, 1})));
  overflow.low = false;
  cases.push_back(overflow);
  const OperandCase good = Fixed({5}), yes = {Bool({}), List({1})}, no = {Bool({}), List({0})};
  AddFiniteCheck(cases, "flags_say_finite", 1, 1, {yes, good, yes});
  AddFiniteCheck(cases, "first_bad_is_a_flag", 1, 1, {good, no, Fixed({5}, List({kNaN}))});
  AddFiniteCheck(cases, "flag_behind_a_bad_gradient", 1, kNaN, {good, Fixed({5}, List({kNaN})), no});
}

struct ScalerCase {
  const char* name;
  double first_bad, scale, good, bad, skipped, consecutive;
  double growth = 2, backoff = 0.5, minimum = 1, maximum = 16777216;
  double interval = 2, bad_limit = 1, dynamic = 1, skip = 1;
};

void AddScalerUpdates(std::vector<OpCase>& cases) {
  const ScalerCase all[] = {
      {"finite", -1, 4, 0, 0, 0, 0},
      {"finite_grows", -1, 4, 1, 0, 0, 0},
      {"finite_ends_a_run", -1, 4, 0, 1, 5, 3},
      {"overflow_backs_off", 0, 4, 1, 0, 0, 0},
      {"overflow_later_gradient", 3, 4, 1, 0, 2, 1, 2, 0.25},
      {"overflow_below_bad_limit", 0, 4, 1, 0, 0, 0, 2, 0.5, 1, 16777216, 2, 2},
      {"overflow_at_bad_limit", 0, 4, 1, 1, 1, 1, 2, 0.5, 1, 16777216, 2, 2},
      {"stops_at_minimum", 0, 1, 1, 0, 0, 0},
      {"stops_at_maximum", -1, 16777216, 1, 0, 0, 0},
      {"growth_would_be_infinite", -1, 0x1p126, 1, 0, 0, 0, 16, 0.5, 0, kInfinity},
      {"loss_alone", -2, 4, 1, 1, 2, 1},
      {"static_overflow", 0, 128, 3, 2, 0, 0, 2, 0.5, 1, 16777216, 2, 1, 0, 1},
      {"static_finite", -1, 128, 3, 2, 1, 1, 2, 0.5, 1, 16777216, 2, 1, 0, 1},
      {"static_overflow_not_skipped", 0, 128, 0, 0, 0, 0, 2, 0.5, 1, 16777216, 2, 1, 0, 0},
  };
  for (const ScalerCase& c : all) {
    const auto f32 = [](double value) { return OperandCase{F32({}), List({value})}; };
    const auto i32 = [](double value) { return OperandCase{I32({}), List({value})}; };
    OpCase op_case{absl::StrCat("update_loss_scale/", c.name),
                   "update_loss_scale",
                   {},
                   {i32(c.first_bad), f32(c.scale), i32(c.good), i32(c.bad), i32(c.skipped), i32(c.consecutive),
                    f32(c.growth), f32(c.backoff), f32(c.minimum), f32(c.maximum), i32(c.interval), i32(c.bad_limit),
                    i32(c.dynamic), i32(c.skip)},
                   {F32({}), I32({}), I32({}), I32({}), I32({})}};
    op_case.low = false;
    cases.push_back(op_case);
  }
}

}  // namespace

std::vector<OpCase> LossScaleCases() {
  std::vector<OpCase> cases;
  AddUnscale(cases);
  AddFiniteChecks(cases);
  AddFinitePart(cases);
  AddScalerUpdates(cases);
  return cases;
}

}  // namespace mpc::op_cases
