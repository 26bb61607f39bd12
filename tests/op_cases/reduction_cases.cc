#include <limits>
#include <utility>

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

struct Line {
  Shape shape;
  std::int64_t axis;
};

// Along the innermost axis and along others, in several tiles, beside few lines and beside many.
const std::vector<Line>& Lines() {
  static const auto* const lines = new std::vector<Line>{
      {{1}, 0},        {{7}, -1},       {{1027}, 0},      {{3, 5}, 0},         {{3, 5}, 1},    {{2, 3, 4}, 1},
      {{130, 257}, 1}, {{257, 130}, 0}, {{2, 40, 33}, 1}, {{3, 20, 1100}, -2}, {{2, 5000}, 1}, {{2, 2, 3, 5}, -3}};
  return *lines;
}

void AddCumsum(std::vector<OpCase>& cases) {
  for (const Line& line : Lines()) {
    for (bool exclusive : {false, true}) {
      for (bool reverse : {false, true}) {
        cases.push_back({absl::StrCat("cumsum/", ShapeToString(line.shape), "_along_", line.axis,
                                      exclusive ? "_exclusive" : "", reverse ? "_reverse" : ""),
                         "cumsum",
                         {{"axis", line.axis}, {"exclusive", exclusive}, {"reverse", reverse}},
                         {Variable(line.shape)},
                         {F32(line.shape)}});
      }
    }
  }
}

// The extent of the axis of `line` in `shape`.
std::int64_t& ExtentOf(const Line& line, Shape& shape) {
  return shape[static_cast<std::size_t>(line.axis < 0 ? line.axis + static_cast<std::int64_t>(shape.size())
                                                      : line.axis)];
}

void AddOrders(std::vector<OpCase>& cases, const std::string& what, const Line& line, const OperandCase& x) {
  for (bool flag : {false, true}) {
    const std::string name =
        absl::StrCat("/", ShapeToString(line.shape), "_along_", line.axis, what, flag ? "_down" : "");
    cases.push_back(
        {"sort" + name, "sort", {{"axis", line.axis}, {"descending", flag}}, {x}, {F32(line.shape), I32(line.shape)}});
    Shape some = line.shape;
    ExtentOf(line, some) = (ExtentOf(line, some) + 2) / 3;
    cases.push_back({"top_k" + name,
                     "top_k",
                     {{"k", ExtentOf(line, some)}, {"axis", line.axis}, {"smallest", !flag}},
                     {x},
                     {F32(some), I32(some)}});
  }
}

void AddSorts(std::vector<OpCase>& cases) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // Lines that fit into a block's shared memory, with whole and with partial blocks, and one that does not. Emulated
  // devices sort slowly, so there are few lines.
  const std::vector<Line> lines = {{{1}, 0},      {{7}, -1},      {{3, 5}, 0},    {{3, 5}, 1},       {{2, 3, 4}, 1},
                                   {{5, 257}, 1}, {{130, 40}, 0}, {{2, 3000}, 1}, {{2, 2, 3, 5}, -3}};
  for (const Line& line : lines) {
    AddOrders(cases, "", line, Variable(line.shape));
  }
  for (const Line& line : {Line{{5, 257}, 1}, Line{{2, 3, 4}, 1}}) {
    AddOrders(cases, "_with_ties", line, Fixed(line.shape, Integers(-1, 3)));
  }
  AddOrders(cases, "_special_values", {{2, 6}, -1},
            Fixed({2, 6}, List({1, nan, -infinity, 0.0, -0.0, nan, infinity, -1, nan, infinity, -infinity, 65504})));
  // The indices of a line are distinct. Those of two lines lie as rows, and as columns.
  const std::pair<Line, Values> scattered[] = {
      {{{3}, 0}, List({4, 1, 0})},
      {{{2, 3}, 1}, List({4, 0, 2, 1, 2, 3})},
      {{{3, 2}, 0}, List({4, 1, 0, 2, 2, 3})},
      {{{2, 3, 4}, -2}, List({0, 1, 2, 3, 2, 3, 4, 0, 4, 0, 1, 2, 1, 2, 3, 4, 3, 4, 0, 1, 0, 1, 2, 3})}};
  for (const auto& [line, indices] : scattered) {
    Shape whole = line.shape;
    ExtentOf(line, whole) = 5;
    cases.push_back({absl::StrCat("top_k_grad/", ShapeToString(line.shape), "_along_", line.axis),
                     "top_k_grad",
                     {{"extent", std::int64_t{5}}, {"axis", line.axis}},
                     {Variable(line.shape), {I32(line.shape), indices}},
                     {F32(whole)}});
  }
}

}  // namespace

std::vector<OpCase> ReductionCases() {
  std::vector<OpCase> cases;
  AddReductions(cases, "reduce_sum");
  AddReductions(cases, "reduce_mean");
  AddArgmax(cases);
  AddCumsum(cases);
  AddSorts(cases);
  return cases;
}

}  // namespace mpc::op_cases
