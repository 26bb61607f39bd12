#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

// A tensor cut into `sizes` along `axis`, or joined from them.
struct Cut {
  Shape whole;
  std::int64_t axis;
  std::vector<std::int64_t> sizes;
};

Shape Piece(const Cut& cut, std::int64_t size) {
  Shape shape = cut.whole;
  const std::int64_t rank = static_cast<std::int64_t>(shape.size());
  shape[static_cast<std::size_t>(cut.axis < 0 ? cut.axis + rank : cut.axis)] = size;
  return shape;
}

void AddCuts(std::vector<OpCase>& cases) {
  const std::vector<Cut> cuts = {
      {{5}, 0, {5}},
      {{7}, 0, {3, 4}},
      {{3, 8}, 1, {1, 5, 2}},
      {{6, 5}, 0, {2, 2, 2}},
      {{6, 5}, -1, {4, 1}},
      {{2, 9, 3, 5}, 1, {4, 5}},   // images
      {{2, 3, 5, 9}, -1, {4, 5}},  // channels-last images
      {{3, 4, 5}, -2, {1, 1, 2}},
      {{2, 70001}, 1, {30000, 40001}},
      {{40000, 3}, 0, {10000, 30000}},
      {{40000, 3}, 1, {1, 2}},
  };
  for (const Cut& cut : cuts) {
    const std::string what =
        absl::StrCat(ShapeToString(cut.whole), "_along_", cut.axis, "_of_", absl::StrJoin(cut.sizes, "_"));
    OpCase concat{absl::StrCat("concat/", what), "concat", {{"axis", cut.axis}}, {}, {F32(cut.whole)}};
    OpCase split{
        absl::StrCat("split/", what), "split", {{"axis", cut.axis}, {"sizes", cut.sizes}}, {Variable(cut.whole)}, {}};
    for (std::int64_t size : cut.sizes) {
      concat.operands.push_back(Variable(Piece(cut, size)));
      split.results.push_back(F32(Piece(cut, size)));
    }
    AddMovement(cases, concat);
    AddMovement(cases, split);
  }
}

// A block of a tensor; padding it by what is missing gives the tensor's shape.
struct Block {
  Shape whole;
  std::vector<std::int64_t> starts, sizes;
};

void AddBlocks(std::vector<OpCase>& cases) {
  const std::vector<Block> blocks = {
      {{}, {}, {}},
      {{5}, {0}, {5}},
      {{9}, {2}, {4}},
      {{6, 7}, {1, 0}, {3, 7}},
      {{6, 7}, {0, 2}, {6, 3}},
      {{4, 5, 6}, {1, 2, 3}, {2, 1, 3}},
      {{2, 3, 8, 9}, {0, 0, 1, 2}, {2, 3, 6, 6}},
      {{7, 5, 8}, {0, 0, 0}, {7, 5, 3}},
      {{1, 70001}, {0, 1}, {1, 69999}},
      {{300, 301}, {7, 0}, {290, 299}},
  };
  for (const Block& block : blocks) {
    const std::string what = absl::StrCat(ShapeToString(block.sizes), "_of_", ShapeToString(block.whole), "_at_",
                                          absl::StrJoin(block.starts, "_"));
    AddMovement(cases, {absl::StrCat("slice/", what),
                        "slice",
                        {{"starts", block.starts}, {"sizes", block.sizes}},
                        {Variable(block.whole)},
                        {F32(block.sizes)}});
    std::vector<std::int64_t> high;
    for (std::size_t axis = 0; axis < block.whole.size(); ++axis) {
      high.push_back(block.whole[axis] - block.starts[axis] - block.sizes[axis]);
    }
    // 0.1 rounds to every storage type.
    for (double value : {0.0, 0.1, -std::numeric_limits<double>::infinity()}) {
      cases.push_back({absl::StrCat("pad/", what, "_with_", value),
                       "pad",
                       {{"low", block.starts}, {"high", high}, {"value", value}},
                       {std::isfinite(value) ? Variable(block.sizes) : Fixed(block.sizes)},
                       {F32(block.whole)}});
    }
    // A value that every type holds.
    AddMovement(cases, {absl::StrCat("pad/", what, "_with_1"),
                        "pad",
                        {{"low", block.starts}, {"high", high}, {"value", 1.0}},
                        {Variable(block.sizes)},
                        {F32(block.whole)}});
  }
  const Attributes ignored = {
      {"low", std::vector<std::int64_t>{0, 2}}, {"high", std::vector<std::int64_t>{1, 5}}, {"value", -100.0}};
  const OpCase labels{"pad/labels_to_ignore", "pad", ignored, {Variable({3, 8})}, {F32({4, 15})}};
  for (DType dtype : {DType::kI8, DType::kI32, DType::kI64}) cases.push_back(OfType(labels, dtype));
}

Shape Joined(const Shape& first, const Shape& second, std::size_t from) {
  Shape joined = first;
  joined.insert(joined.end(), second.begin() + static_cast<std::ptrdiff_t>(from), second.end());
  return joined;
}

void AddGathers(std::vector<OpCase>& cases) {
  struct Lookup {
    Shape table, indices;
  };
  const std::vector<Lookup> lookups = {
      {{1}, {}},        {{5}, {7}},           {{6, 4}, {}},         {{6, 4}, {3, 5}},
      {{4, 2, 3}, {6}}, {{100, 64}, {32, 9}}, {{3, 1500}, {2, 11}}, {{5000, 8}, {4000}},
      {{2, 3}, {9001}}};
  for (const Lookup& lookup : lookups) {
    const Shape y = Joined(lookup.indices, lookup.table, 1);
    const std::int64_t rows = lookup.table[0];
    for (DType dtype : {DType::kI32, DType::kI64}) {
      const OperandCase indices{{dtype, lookup.indices}, Integers(0, rows)};
      const std::string what = absl::StrCat(ShapeToString(lookup.table), "_at_", ShapeToString(lookup.indices),
                                            dtype == DType::kI32 ? "_i32" : "_i64");
      AddMovement(cases, {absl::StrCat("gather/", what), "gather", {}, {Variable(lookup.table), indices}, {F32(y)}});
      cases.push_back({absl::StrCat("gather_grad/", what),
                       "gather_grad",
                       {{"rows", rows}},
                       {Variable(y), indices},
                       {F32(lookup.table)}});
      cases.push_back({absl::StrCat("scatter_add/", what),
                       "scatter_add",
                       {},
                       {Variable(lookup.table), indices, Variable(y)},
                       {F32(lookup.table)}});
    }
  }
  const OperandCase outside{I32({6}), List({0, -1, 3, 4, 3, -100})};
  AddMovement(cases, {"gather/indices_outside", "gather", {}, {Fixed({4, 3}), outside}, {F32({6, 3})}});
  AddMovement(cases, {"gather/vectors_outside", "gather", {}, {Fixed({4, 16}), outside}, {F32({6, 16})}});
  cases.push_back({"gather_grad/indices_outside",
                   "gather_grad",
                   {{"rows", std::int64_t{4}}},
                   {Variable({6, 3}), outside},
                   {F32({4, 3})}});
  cases.push_back(
      {"scatter_add/indices_outside", "scatter_add", {}, {Variable({4, 3}), outside, Variable({6, 3})}, {F32({4, 3})}});
  cases.push_back({"scatter_add/few_rows_for_many",
                   "scatter_add",
                   {},
                   {Variable({3, 8}), {I32({200}), Integers(0, 3)}, Variable({200, 8})},
                   {F32({3, 8})}});
  cases.push_back({"scatter_add/one_row_for_all",
                   "scatter_add",
                   {},
                   {Variable({3, 5}), {I64({3000}), List({1})}, Variable({3000, 5})},
                   {F32({3, 5})}});
  cases.push_back({"gather_grad/few_rows_for_many",
                   "gather_grad",
                   {{"rows", std::int64_t{3}}},
                   {Variable({200, 8}), {I32({200}), Integers(0, 3)}},
                   {F32({3, 8})}});
  cases.push_back({"gather_grad/one_row_for_all",
                   "gather_grad",
                   {{"rows", std::int64_t{3}}},
                   {Variable({3000, 5}), {I64({3000}), List({1})}},
                   {F32({3, 5})}});
}

void AddOneHot(std::vector<OpCase>& cases) {
  for (const Shape& shape : {Shape{}, Shape{7}, Shape{3, 5}, Shape{4000}}) {
    for (DType dtype : {DType::kI32, DType::kI64}) {
      Shape y = shape;
      y.push_back(10);
      // Indices -2, -1, 10 and 11 are outside.
      OpCase op_case{absl::StrCat("one_hot/", ShapeToString(shape), dtype == DType::kI32 ? "_i32" : "_i64"),
                     "one_hot",
                     {{"depth", std::int64_t{10}}, {"on", 0.9}, {"off", 0.1}},
                     {{{dtype, shape}, Integers(-2, 12)}},
                     {F32(y)}};
      op_case.f32_results = {0};
      cases.push_back(op_case);
    }
  }
}

struct Reduction {
  Shape shape;
  std::vector<std::int64_t> axes;
  Shape kept;  // with the reduced axes as extents of 1
};

void AddReductions(std::vector<OpCase>& cases) {
  const std::vector<Reduction> reductions = {
      {{}, {}, {}},
      {{1}, {}, {1}},
      {{7}, {0}, {1}},
      {{3, 5}, {}, {1, 1}},
      {{3, 5}, {0}, {1, 5}},
      {{3, 5}, {1}, {3, 1}},
      {{2, 3, 4}, {1}, {2, 1, 4}},
      {{2, 3, 4}, {0, 2}, {1, 3, 1}},
      {{4, 6, 5, 7}, {2, 3}, {4, 6, 1, 1}},
      {{4, 5, 7, 6}, {1, 2}, {4, 1, 1, 6}},
      {{65537}, {0}, {1}},
      {{257, 130}, {0}, {1, 130}},
      {{130, 2570}, {1}, {130, 1}},
      {{3, 2000}, {0}, {1, 2000}},
  };
  for (const Reduction& reduction : reductions) {
    Shape dropped;
    for (std::size_t axis = 0; axis < reduction.shape.size(); ++axis) {
      const bool reduced = reduction.axes.empty() || std::find(reduction.axes.begin(), reduction.axes.end(),
                                                               static_cast<std::int64_t>(axis)) != reduction.axes.end();
      if (!reduced) dropped.push_back(reduction.shape[axis]);
    }
    for (bool keep_dims : {false, true}) {
      const Shape& y = keep_dims ? reduction.kept : dropped;
      const Attributes attributes = {{"axes", reduction.axes}, {"keep_dims", keep_dims}};
      const std::string what =
          absl::StrCat(ShapeToString(reduction.shape), "_over_",
                       reduction.axes.empty() ? "all" : absl::StrJoin(reduction.axes, ""), keep_dims ? "_kept" : "");
      cases.push_back(
          {absl::StrCat("reduce_max/", what), "reduce_max", attributes, {Variable(reduction.shape)}, {F32(y)}});
      cases.push_back(
          {absl::StrCat("reduce_min/", what), "reduce_min", attributes, {Variable(reduction.shape)}, {F32(y)}});
      // Products of so many factors stay near 1.
      const Values factors = Uniform(0.98, 1.02);
      cases.push_back({absl::StrCat("reduce_prod/", what),
                       "reduce_prod",
                       attributes,
                       {Variable(reduction.shape, factors)},
                       {F32(y)}});
      cases.push_back({absl::StrCat("reduce_prod_grad/", what),
                       "reduce_prod_grad",
                       attributes,
                       {Variable(y), Variable(reduction.shape, factors)},
                       {F32(reduction.shape)}});
      // Few distinct values, so that many elements share the cotangent.
      cases.push_back({absl::StrCat("reduce_max_grad/", what),
                       "reduce_max_grad",
                       attributes,
                       {Variable(y), Fixed(reduction.shape, Integers(0, 4)), Fixed(y, Computed("reduce_max", 0, {1}))},
                       {F32(reduction.shape)}});
    }
  }
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::int64_t axis : {0, 1}) {
    const Attributes attributes = {{"axes", std::vector<std::int64_t>{axis}}};
    for (const std::string op : {"reduce_max", "reduce_min", "reduce_prod"}) {
      cases.push_back({absl::StrCat(op, "/special_values_along_", axis),
                       op,
                       attributes,
                       {Fixed({3, 3}, List({1, nan, nan, -infinity, -infinity, -infinity, infinity, nan, 2}))},
                       {F32({3})}});
    }
    // One zero, several and none, and signs.
    const Values zeros = List({0, 2, 3, 0, 0, 5, -1, 2, -3});
    cases.push_back({absl::StrCat("reduce_prod/zeros_along_", axis),
                     "reduce_prod",
                     attributes,
                     {Variable({3, 3}, zeros)},
                     {F32({3})}});
    cases.push_back({absl::StrCat("reduce_prod_grad/zeros_along_", axis),
                     "reduce_prod_grad",
                     attributes,
                     {Variable({3}, Integers(-3, 4)), Variable({3, 3}, zeros)},
                     {F32({3, 3})}});
  }
}

}  // namespace

std::vector<OpCase> MovementCases() {
  std::vector<OpCase> cases;
  AddCuts(cases);
  AddBlocks(cases);
  AddGathers(cases);
  AddOneHot(cases);
  AddReductions(cases);
  return cases;
}

}  // namespace mpc::op_cases
