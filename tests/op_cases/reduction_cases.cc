#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

struct Reduction {
  Shape shape;
  std::vector<std::int64_t> axes;
};

Shape Reduced(const Reduction& reduction, bool keep_dims) {
  std::vector<bool> dropped(reduction.shape.size(), reduction.axes.empty());
  for (std::int64_t axis : reduction.axes) dropped[static_cast<std::size_t>(axis)] = true;
  Shape result;
  for (std::size_t axis = 0; axis < reduction.shape.size(); ++axis) {
    if (!dropped[axis]) {
      result.push_back(reduction.shape[axis]);
    } else if (keep_dims) {
      result.push_back(1);
    }
  }
  return result;
}

void AddReductions(std::vector<OpCase>& cases, const std::string& op) {
  const std::vector<Reduction> reductions = {
      {{1}, {}},
      {{7}, {0}},
      {{}, {}},
      {{3, 5}, {}},
      {{3, 5}, {0}},
      {{3, 5}, {1}},
      {{2, 3, 4}, {1}},
      {{2, 3, 4}, {0, 2}},
      {{4, 6, 5, 7}, {0, 2, 3}},
      {{4, 6, 5, 7}, {1}},
      {{1, 9, 1}, {0, 2}},
      {{65537}, {0}},
      {{257, 130}, {0}},
      {{130, 257}, {1}},
      // Shared out over several blocks of threads, in vectors and in single elements, with and without strides.
      {{2, 16384}, {1}},
      {{24, 3, 784}, {0, 2}},
      {{1030, 64}, {0}},
      {{2, 1100, 24}, {1}},
      {{9, 264}, {0}},
  };
  for (const Reduction& reduction : reductions) {
    for (bool keep_dims : {false, true}) {
      cases.push_back(
          {absl::StrCat(op, "/", ShapeToString(reduction.shape), "_over_",
                        reduction.axes.empty() ? "all" : absl::StrJoin(reduction.axes, ""), keep_dims ? "_kept" : ""),
           op,
           {{"axes", reduction.axes}, {"keep_dims", keep_dims}},
           {Variable(reduction.shape)},
           {F32(Reduced(reduction, keep_dims))}});
    }
  }
}

void AddArgmax(std::vector<OpCase>& cases) {
  const std::vector<std::pair<Shape, std::int64_t>> lines = {{{1}, -1},      {{9}, 0},        {{29, 10}, -1},
                                                             {{29, 10}, 0},  {{3, 4, 5}, 1},  {{4, 1000}, 1},
                                                             {{7, 1}, 1},    {{2, 20000}, 1},  // several blocks a line
                                                             {{1500, 16}, 0}};
  for (const auto& [shape, axis] : lines) {
    const Shape result = Reduced({shape, {axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis}}, false);
    const std::string name = absl::StrCat("argmax/", ShapeToString(shape), "_along_", axis);
    cases.push_back({name, "argmax", {{"axis", axis}}, {Fixed(shape)}, {I32(result)}});
    cases.push_back({name + "_with_ties", "argmax", {{"axis", axis}}, {Fixed(shape, Integers(0, 3))}, {I32(result)}});
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  cases.push_back(
      {"argmax/special_values",
       "argmax",
       {{"axis", std::int64_t{-1}}},
       {Fixed({4, 3}, List({1, nan, nan, -infinity, -infinity, -infinity, infinity, nan, infinity, -1, 3, infinity}))},
       {I32({4})}});
}

}  // namespace

std::vector<OpCase> ReductionCases() {
  std::vector<OpCase> cases;
  AddReductions(cases, "reduce_sum");
  AddReductions(cases, "reduce_mean");
  AddArgmax(cases);
  return cases;
}

}  // namespace mpc::op_cases
