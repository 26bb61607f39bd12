#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/op_cases/elementwise_shapes.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

void AddUnaryGrad(std::vector<OpCase>& cases, const std::string& forward, const Values& x) {
  for (const Shape& shape : UnaryShapes()) {
    OpCase op_case{absl::StrCat(forward, "_grad/", ShapeToString(shape)),
                   forward + "_grad",
                   {},
                   {Variable(shape), Variable(shape, Computed(forward, 0, {2}))},
                   {F32(shape)}};
    op_case.auxiliary = {Fixed(shape, x)};
    cases.push_back(op_case);
  }
}

void AddBinaryGrads(std::vector<OpCase>& cases) {
  for (const BroadcastShapes& shapes : BinaryShapes()) {
    OpCase div{
        NameOf("div_grad", shapes),
        "div_grad",
        {},
        {Variable(shapes.y), Variable(shapes.y, Computed("div", 0, {3, 2})), Variable(shapes.b, Uniform(0.5, 2))},
        {F32(shapes.y)}};
    div.auxiliary = {Fixed(shapes.y)};
    cases.push_back(div);
    // Few distinct values, so that many operands are equal.
    for (const char* op : {"maximum_grad", "minimum_grad"}) {
      cases.push_back({NameOf(op, shapes),
                       op,
                       {},
                       {Variable(shapes.y), Fixed(shapes.a, Integers(-2, 3)), Fixed(shapes.b, Integers(-2, 3))},
                       {F32(shapes.y), F32(shapes.y)}});
    }
  }
}

void AddScalar(std::vector<OpCase>& cases) {
  for (const char* op : {"add_scalar", "mul_scalar"}) {
    // 1e-8 would vanish in f16: the constant stays f32.
    for (double value : {0.0, -1.5, 0.1, 1e-8, 3.0}) {
      cases.push_back({absl::StrCat(op, "/", value), op, {{"value", value}}, {Variable({3, 41})}, {F32({3, 41})}});
    }
    cases.push_back({absl::StrCat(op, "/large"), op, {{"value", 0.3}}, {Variable({123457})}, {F32({123457})}});
  }
}

void AddSumN(std::vector<OpCase>& cases) {
  for (std::size_t count : {1, 2, 3, 5}) {
    for (const Shape& shape : UnaryShapes()) {
      OpCase op_case{absl::StrCat("sum_n/", count, "_of_", ShapeToString(shape)), "sum_n", {}, {}, {F32(shape)}};
      op_case.operands.assign(count, Variable(shape));
      cases.push_back(op_case);
    }
  }
  // More terms than a table of few takes, and more than one launch takes on a GPU.
  for (std::size_t count : {17, 300}) {
    OpCase op_case{absl::StrCat("sum_n/", count, "_of_19"), "sum_n", {}, {}, {F32({19})}};
    op_case.operands.assign(count, Variable({19}));
    cases.push_back(op_case);
  }
  // A sum that would overflow f16 if it were rounded after each addition (AMP-9).
  cases.push_back({"sum_n/partial_sum_beyond_f16",
                   "sum_n",
                   {},
                   {Fixed({5}, List({60000})), Fixed({5}, List({10000})), Fixed({5}, List({-20000}))},
                   {F32({5})}});
}

void AddComparisons(std::vector<OpCase>& cases) {
  for (const std::string op : {"equal", "greater", "less", "not_equal", "greater_equal", "less_equal"}) {
    for (const BroadcastShapes& shapes : BinaryShapes()) {
      cases.push_back({NameOf(op, shapes),
                       op,
                       {},
                       {Fixed(shapes.a, Integers(0, 3)), Fixed(shapes.b, Integers(0, 3))},
                       {Bool(shapes.y)}});
    }
    for (DType dtype : {DType::kI32, DType::kI64}) {
      const TensorSpec spec{dtype, {29}};
      cases.push_back({absl::StrCat(op, dtype == DType::kI32 ? "/i32" : "/i64"),
                       op,
                       {},
                       {{spec, Integers(0, 4)}, {spec, Integers(0, 4)}},
                       {Bool({29})}});
    }
    cases.push_back({op + "/special_values",
                     op,
                     {},
                     {Fixed({6}, List({kNaN, kInfinity, 0.0, 1, kNaN, -kInfinity})),
                      Fixed({6}, List({kNaN, kInfinity, -0.0, 2, 1, kInfinity}))},
                     {Bool({6})}});
  }
}

void AddLogic(std::vector<OpCase>& cases) {
  const auto mask = [](const Shape& shape) { return OperandCase{Bool(shape), Integers(0, 2)}; };
  for (const std::string op : {"logical_and", "logical_or"}) {
    for (const BroadcastShapes& shapes : BinaryShapes()) {
      cases.push_back({NameOf(op, shapes), op, {}, {mask(shapes.a), mask(shapes.b)}, {Bool(shapes.y)}});
    }
  }
  for (const Shape& shape : UnaryShapes()) {
    cases.push_back(
        {absl::StrCat("logical_not/", ShapeToString(shape)), "logical_not", {}, {mask(shape)}, {Bool(shape)}});
  }
}

void AddIntegerArithmetic(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& op, const std::string& what, std::vector<OperandCase> operands) {
    OpCase op_case{absl::StrCat(op, "/", what, "_", std::string(DTypeName(operands[0].spec.dtype))), op, {}, {}, {}};
    op_case.results = {operands[0].spec};
    op_case.operands = std::move(operands);
    op_case.low = false;
    cases.push_back(op_case);
  };
  const double least = -0x1p31, largest = 0x1p31 - 1;
  for (const std::string op :
       {"int_add", "int_sub", "int_mul", "int_floor_div", "int_mod", "int_maximum", "int_minimum"}) {
    for (DType dtype : {DType::kI32, DType::kI64}) {
      const auto operand = [&](const Shape& shape, const Values& values = Integers(-50, 50)) {
        return OperandCase{{dtype, shape}, values};
      };
      add(op, "vector", {operand({1027}), operand({1027}, Integers(-4, 5))});
      add(op, "scalar", {operand({3, 7}), operand({}, Integers(2, 4))});
      add(op, "row", {operand({5, 8}), operand({8}, Integers(-3, 4))});
      add(op, "column", {operand({5, 3}), operand({5, 1})});
      add(op, "extremes",
          {operand({8}, List({least, least, largest, largest, least, 5, 0, -7})),
           operand({8}, List({-1, 1, 1, largest, least, 0, 0, 2}))});
    }
  }
  for (const std::string op : {"int_neg", "int_abs"}) {
    for (DType dtype : {DType::kI32, DType::kI64}) {
      add(op, "vector", {{{dtype, {1027}}, Integers(-50, 50)}});
      add(op, "extremes", {{{dtype, {5}}, List({least, largest, 0, -1, 1})}});
    }
  }
}

void AddIota(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& what, DType dtype, const Shape& shape, std::int64_t axis, std::int64_t start,
                       std::int64_t step) {
    OpCase op_case{absl::StrCat("iota/", what, "_", std::string(DTypeName(dtype))),
                   "iota",
                   {{"shape", shape}, {"axis", axis}, {"start", start}, {"step", step}},
                   {},
                   {{dtype, shape}}};
    op_case.low = false;
    cases.push_back(op_case);
  };
  for (DType dtype : {DType::kF32, DType::kI32, DType::kI64}) {
    add("one", dtype, {1}, 0, 7, 3);
    add("vector", dtype, {1027}, -1, 0, 1);
    add("middle", dtype, {3, 5, 7}, 1, -4, 2);
    add("first", dtype, {301, 97}, 0, 1000, -1);
    // Numbers that f32 rounds.
    add("large", dtype, {50}, 0, (std::int64_t{1} << 24) - 20, 1);
  }
}

void AddSelection(std::vector<OpCase>& cases) {
  for (const Shape& shape : UnaryShapes()) {
    const OperandCase mask{Bool(shape), Integers(0, 2)};
    cases.push_back({absl::StrCat("select/mask_", ShapeToString(shape)),
                     "select",
                     {},
                     {mask, Fixed(shape), Fixed(shape)},
                     {F32(shape)}});
  }
  for (double condition : {0.0, 1.0}) {
    for (DType dtype : {DType::kF32, DType::kI32, DType::kI64, DType::kBool}) {
      const TensorSpec spec{dtype, {3, 7}};
      const Values a = dtype == DType::kF32 ? Normal() : Integers(0, 2);
      cases.push_back({absl::StrCat("select/scalar_", condition, "_", std::string(DTypeName(dtype))),
                       "select",
                       {},
                       {{Bool({}), List({condition})}, {spec, a}, {spec, a}},
                       {spec}});
    }
  }
}

void AddWhere(std::vector<OpCase>& cases) {
  for (const BroadcastShapes& shapes : BinaryShapes()) {
    // The condition stretches where an operand does, or is one for all.
    for (const Shape& condition : {shapes.a, shapes.y, Shape{}}) {
      AddMovement(cases, {absl::StrCat("where/", ShapeToString(condition), "_of_", ShapeToString(shapes.a), "_and_",
                                       ShapeToString(shapes.b)),
                          "where",
                          {},
                          {{Bool(condition), Integers(0, 2)}, Variable(shapes.a), Variable(shapes.b)},
                          {F32(shapes.y)}});
      if (condition == shapes.y || shapes.a == shapes.y) break;
    }
  }
  cases.push_back({"where/special_values",
                   "where",
                   {},
                   {{Bool({4}), List({1, 0, 1, 0})},
                    Fixed({4}, List({kNaN, kNaN, kInfinity, 1})),
                    Fixed({4}, List({1, 2, kNaN, -kInfinity}))},
                   {F32({4})}});
}

void AddCasts(std::vector<OpCase>& cases) {
  const std::vector<DType> floating = {DType::kF32, DType::kF16, DType::kBF16};
  // Ties of f16 and bf16, their largest values and beyond, their subnormals.
  const std::vector<double> special = {0,       1,         -1,           65504,  65519,     65520,      -65536,
                                       2049,    2051,      1.0009765625, 257,    259,       0x1p-14,    0x1p-24,
                                       0x1p-25, 0x1.8p-25, 0x1p-126,     3.3e38, kInfinity, -kInfinity, kNaN};
  for (DType from : floating) {
    for (DType to : floating) {
      const std::string name = absl::StrCat("cast/", std::string(DTypeName(from)), "_to_", std::string(DTypeName(to)));
      for (const Shape& shape : {Shape{}, Shape{1}, Shape{3, 5}, Shape{1027}, Shape{123457}}) {
        OpCase op_case{absl::StrCat(name, "_", ShapeToString(shape)),
                       "cast",
                       {},
                       {{{from, shape}, Normal(0, 100), from == DType::kF32 && to == DType::kF32}},
                       {{to, shape}}};
        op_case.low = false;
        cases.push_back(op_case);
      }
      const Shape shape = {static_cast<std::int64_t>(special.size())};
      OpCase op_case{name + "_special_values", "cast", {}, {{{from, shape}, List(special)}}, {{to, shape}}};
      op_case.low = false;
      cases.push_back(op_case);
    }
  }
  for (double value : {0.1, -3.0, 1e60, 1e-60}) {
    OpCase op_case{
        absl::StrCat("cast/f64_to_f32_", value), "cast", {}, {{{DType::kF64, {}}, List({value})}}, {F32({})}};
    op_case.low = false;
    cases.push_back(op_case);
  }
  const std::vector<std::pair<DType, DType>> integral = {
      {DType::kF32, DType::kI32}, {DType::kI32, DType::kF32},  {DType::kI64, DType::kF32},  {DType::kI32, DType::kI64},
      {DType::kI64, DType::kI32}, {DType::kBool, DType::kF32}, {DType::kBool, DType::kI32}, {DType::kI32, DType::kI8},
      {DType::kI8, DType::kF32},  {DType::kBool, DType::kI8}};
  for (const auto& [from, to] : integral) {
    const Values values = from == DType::kF32                      ? Uniform(-50, 50)
                          : from == DType::kBool                   ? Integers(0, 2)
                          : from == DType::kI8 || to == DType::kI8 ? Integers(-128, 128)
                                                                   : Integers(-1000, 1000);
    OpCase op_case{absl::StrCat("cast/", std::string(DTypeName(from)), "_to_", std::string(DTypeName(to))),
                   "cast",
                   {},
                   {{{from, {37}}, values}},
                   {{to, {37}}}};
    op_case.low = false;
    cases.push_back(op_case);
  }
}

// To every type that saturates, values at its limits and beyond; and from integers, those that low types round.
void AddCastsOutOfRange(std::vector<OpCase>& cases) {
  const std::vector<double> numbers = {0.9,       -0.9,    126.9,     127,       127.9,      128,     -128,
                                       -128.9,    -129,    300,       -300,      65504,      -65504,  2147483520.0,
                                       0x1p31,    -0x1p31, -0x1.8p31, 0x1.fp62,  0x1p63,     -0x1p63, 0x1p64,
                                       -0x1.1p63, 3.3e38,  -3.3e38,   kInfinity, -kInfinity, kNaN,    -0.0};
  // i64 holds each of them, f64 too: a reference in f64 says what is exact.
  const std::vector<double> integers = {
      0,       1,          -1,         127,          128,        -128,    -129,    255,         256,    300,
      -300,    65519,      65520,      2147483646.0, 0x1p31 - 1, 0x1p31,  -0x1p31, -0x1p31 - 1, 0x1p32, 0x1p40 + 1,
      -0x1p40, 0x1p52 + 1, 0x1p53 - 1, -0x1p53 + 1,  0x1p62,     -0x1p62, -0x1p63, 16777217};
  const auto add = [&](DType from, DType to, const std::vector<double>& values) {
    const Shape shape = {static_cast<std::int64_t>(values.size())};
    OpCase op_case{
        absl::StrCat("cast/", std::string(DTypeName(from)), "_to_", std::string(DTypeName(to)), "_out_of_range"),
        "cast",
        {},
        {{{from, shape}, List(values)}},
        {{to, shape}}};
    op_case.low = false;
    cases.push_back(op_case);
  };
  const std::vector<DType> floating = {DType::kF32, DType::kF16, DType::kBF16};
  const std::vector<DType> integral = {DType::kI8, DType::kI32, DType::kI64};
  for (DType to : integral) {
    for (DType from : floating) add(from, to, numbers);
    for (DType from : integral) {
      if (from != to) add(from, to, integers);
    }
    for (DType low : floating) add(to, low, integers);
    add(to, DType::kBool, integers);
    add(DType::kBool, to, {0, 1});
  }
  for (DType from : floating) {
    add(from, DType::kBool, numbers);
    add(DType::kBool, from, {0, 1});
  }
}

void AddRandom(std::vector<OpCase>& cases) {
  for (double p : {0.0, 0.1, 0.5, 0.9}) {
    for (const Shape& shape : UnaryShapes()) {
      cases.push_back({absl::StrCat("dropout/", p, "_of_", ShapeToString(shape)),
                       "dropout",
                       {{"p", p}, {"call_site", std::int64_t{3}}},
                       {Variable(shape), {I64({}), List({1234567890123})}, {I32({}), List({17})}},
                       {F32(shape)}});
    }
  }
  for (const char* distribution : {"uniform", "normal", "truncated_normal"}) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{5}, Shape{3, 7}, Shape{6, 1, 5, 5}, Shape{20011}}) {
      OpCase op_case{absl::StrCat("random/", distribution, "_", ShapeToString(shape)),
                     "random",
                     {{"distribution", std::string(distribution)},
                      {"a", -0.3},
                      {"b", 0.7},
                      {"stream", std::int64_t{5}},
                      {"shape", shape}},
                     {{I64({}), List({-42})}},
                     {F32(shape)}};
      op_case.low = false;
      cases.push_back(op_case);
    }
  }
}

}  // namespace

std::vector<OpCase> ElementwiseCases() {
  std::vector<OpCase> cases;
  AddUnary(cases, "relu", Normal(), {-0.0, 0, -1, 1, 65504, -65504, kInfinity, -kInfinity, kNaN});
  AddUnary(cases, "neg", Normal(), {-0.0, 0, -1, 1, 65504, kInfinity, -kInfinity, kNaN});
  AddUnary(cases, "stop_gradient", Normal(), {-0.0, 1, kInfinity, kNaN}, /*differentiable=*/false);
  for (DType dtype : {DType::kI8, DType::kI32, DType::kI64, DType::kBool}) {
    cases.push_back(OfType({"stop_gradient/3x7", "stop_gradient", {}, {Fixed({3, 7})}, {F32({3, 7})}}, dtype));
  }
  AddUnary(cases, "sigmoid", Normal(0, 3),
           {-200, -100, -87, -30, -16, -1e-3, 0, 1e-3, 16, 30, 87, 100, kInfinity, -kInfinity, kNaN});
  AddUnary(cases, "tanh", Normal(0, 2),
           {-100, -20, -9, -0.6, -1e-3, -1e-6, 0, 1e-6, 1e-3, 0.6, 9, 20, 100, kInfinity, -kInfinity, kNaN});
  AddUnary(cases, "exp", Normal(0, 3),
           {-200, -100, -80, -1e-4, 0, 1e-4, 1, 11, 88, 89, 200, kInfinity, -kInfinity, kNaN});
  AddUnary(cases, "log", Uniform(0.05, 20), {0, 6e-8, 0.5, 0.9995, 1, 1.001, 2, 60000, kInfinity, -1, kNaN});
  AddUnary(cases, "sqrt", Uniform(0.05, 20), {0, 6e-8, 0.25, 1, 2, 60000, kInfinity, -1, kNaN});
  AddUnaryGrad(cases, "relu", Normal());
  AddUnaryGrad(cases, "sigmoid", Normal(0, 3));
  AddUnaryGrad(cases, "tanh", Normal(0, 2));
  AddUnaryGrad(cases, "sqrt", Uniform(0.05, 20));
  AddBinary(cases, "add", Normal());
  AddBinary(cases, "sub", Normal());
  AddBinary(cases, "mul", Normal());
  AddBinary(cases, "div", Uniform(0.5, 2));
  AddBinary(cases, "maximum", Normal());
  AddBinary(cases, "minimum", Normal());
  for (const std::string op : {"maximum", "minimum"}) {
    cases.push_back({op + "/special_values",
                     op,
                     {},
                     {Fixed({5}, List({kNaN, 1, -kInfinity, 2, kInfinity})),
                      Fixed({5}, List({1, kNaN, -kInfinity, 2, -kInfinity}))},
                     {F32({5})}});
  }
  AddBinaryGrads(cases);
  AddScalar(cases);
  AddSumN(cases);
  AddComparisons(cases);
  AddLogic(cases);
  AddIntegerArithmetic(cases);
  AddIota(cases);
  AddSelection(cases);
  AddWhere(cases);
  AddCasts(cases);
  AddCastsOutOfRange(cases);
  AddRandom(cases);
  return cases;
}

}  // namespace mpc::op_cases
