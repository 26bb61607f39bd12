#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/op_cases/elementwise_shapes.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {
namespace {

// The gradient operation of a unary one, from its operand.
void AddInputGrad(std::vector<OpCase>& cases, const std::string& op, const Values& x) {
  for (const Shape& shape : UnaryShapes()) {
    cases.push_back(
        {absl::StrCat(op, "/", ShapeToString(shape)), op, {}, {Variable(shape), Variable(shape, x)}, {F32(shape)}});
  }
}

// An operation with attributes and its gradient: some shapes and special values of x. f16 holds its second derivative
// if `twice_in_low`.
void AddWithAttributes(std::vector<OpCase>& cases, const std::string& op, const std::string& what,
                       const Attributes& attributes, const Values& x, const std::vector<double>& special,
                       bool twice_in_low = true) {
  const std::string name = absl::StrCat(op, "/", what, "_");
  for (const Shape& shape : {Shape{}, Shape{3, 5}, Shape{1027}, Shape{3, 40961}}) {
    cases.push_back({name + ShapeToString(shape), op, attributes, {Variable(shape, x)}, {F32(shape)}});
    cases.push_back({absl::StrCat(op, "_grad/", what, "_", ShapeToString(shape)),
                     op + "_grad",
                     attributes,
                     {Variable(shape), twice_in_low ? Variable(shape, x) : Fixed(shape, x)},
                     {F32(shape)}});
  }
  const Shape shape = {static_cast<std::int64_t>(special.size())};
  cases.push_back({name + "special_values", op, attributes, {Fixed(shape, List(special))}, {F32(shape)}});
}

void AddUnaries(std::vector<OpCase>& cases) {
  AddUnary(cases, "abs", Normal(), {-0.0, 0, -1, 1, 65504, kInfinity, -kInfinity, kNaN});
  AddUnary(cases, "floor", Normal(0, 3), {-0.0, 0, -1, 1, -0.5, 0.5, 2.9990234375, -2.0009765625, kInfinity, kNaN});
  AddUnary(cases, "square", Normal(), {-0.0, 1, -255, 300, 1e-6, kInfinity, -kInfinity, kNaN});
  AddUnary(cases, "log1p", Uniform(-0.5, 20),
           {-0.0, 1e-7, -1e-7, 6e-8, 0.5, -0.9995, -1, 1, 60000, 1e30, kInfinity, -2, kNaN});
  // Arguments beyond 2^30 take the slow path, and their block with them.
  AddUnary(cases, "sin", Normal(0, 3), {-0.0, 1e-4, 3.140625, -1.5703125, 100, 60000, 1e10, 1e30, kInfinity, kNaN});
  AddUnary(cases, "cos", Normal(0, 3), {-0.0, 1e-4, 3.140625, -1.5703125, 100, 60000, 1e10, 1e30, kInfinity, kNaN});
  AddUnary(cases, "silu", Normal(0, 3),
           {-200, -100, -87, -30, -16, -1e-3, 0, 1e-3, 16, 30, 100, kInfinity, -kInfinity, kNaN});
  // The derivative jumps at -3 and at 3.
  cases.push_back({"hard_swish/below", "hard_swish", {}, {Variable({67}, Uniform(-20, -3.1))}, {F32({67})}});
  cases.push_back({"hard_swish/above", "hard_swish", {}, {Variable({67}, Uniform(3.1, 20))}, {F32({67})}});
  AddUnary(cases, "hard_swish", Uniform(-2.9, 2.9),
           {-1e30, -4, -3, -2.99609375, -1.5, -1e-3, -0.0, 1e-3, 2.99609375, 3, 1e30, kInfinity, -kInfinity, kNaN});
  AddUnary(
      cases, "erf", Normal(0, 1),
      {-1e20, -10, -4, -1.0009765625, -1, -1e-4, -0.0, 1e-6, 0.5, 1, 1.0009765625, 3, 9, kInfinity, -kInfinity, kNaN});
  AddInputGrad(cases, "abs_grad", Integers(-2, 3));
  AddInputGrad(cases, "square_grad", Normal());
  AddInputGrad(cases, "log1p_grad", Uniform(-0.9, 20));
  AddInputGrad(cases, "sin_grad", Normal(0, 30));
  AddInputGrad(cases, "cos_grad", Normal(0, 30));
  AddInputGrad(cases, "silu_grad", Normal(0, 5));
  AddInputGrad(cases, "hard_swish_grad", Normal(0, 3));
  AddInputGrad(cases, "erf_grad", Normal(0, 2));
  cases.push_back(
      {"sin_grad/large_x", "sin_grad", {}, {Fixed({5}), Fixed({5}, List({1e10, 3, -1e20, 0.5, 3e38}))}, {F32({5})}});
  cases.push_back({"erf_grad/large_x",
                   "erf_grad",
                   {},
                   {Fixed({7}), Fixed({7}, List({-1e20, -30, -9, 0, 5, 12, 3e38}))},
                   {F32({7})}});
  cases.push_back({"silu_grad/large_x",
                   "silu_grad",
                   {},
                   {Fixed({6}), Fixed({6}, List({-1000, -90, -50, 50, 90, 1000}))},
                   {F32({6})}});
}

void AddParameterised(std::vector<OpCase>& cases) {
  for (const char* form : {"none", "tanh"}) {
    const Attributes attributes = {{"approximate", std::string(form)}};
    AddWithAttributes(cases, "gelu", form, attributes, Normal(0, 2),
                      {-1e20, -100, -14, -9, -4, -1, -1e-4, 0, 1e-4, 1, 4, 9, 100, 1e20, kInfinity, -kInfinity, kNaN});
    // The lower tail, where 1 + erf(x) cancels, and values whose cube overflows.
    cases.push_back({absl::StrCat("gelu_grad/", form, "_tails"),
                     "gelu_grad",
                     attributes,
                     {Fixed({9}), Fixed({9}, List({-1e20, -30, -9, -5, -3, 3, 9, 30, 1e20}))},
                     {F32({9})}});
    cases.push_back({absl::StrCat("gelu_grad/", form, "_finite_tails"),
                     "gelu_grad",
                     attributes,
                     {Variable({10}), Variable({10}, List({-3000, -30, -16.5, -9, -5, 5, 9, 16.5, 30, 3000}))},
                     {F32({10})}});
  }
  for (double alpha : {0.0, 0.2, -1.5}) {
    AddWithAttributes(cases, "leaky_relu", absl::StrCat(alpha), {{"alpha", alpha}}, Normal(),
                      {-0.0, 0, -1, 1, 65504, kInfinity, kNaN});
  }
  // Whole, fractional and negative exponents; none is 0.
  for (double exponent : {2.0, 3.0, 0.5, -1.0, -0.5, 1.7, 10.0}) {
    AddWithAttributes(cases, "pow", absl::StrCat(exponent), {{"exponent", exponent}}, Uniform(0.5, 2),
                      {-0.0, 0, -2, -1, 1, 3, 1e-6, 1e-40, 60000, kInfinity, -kInfinity, kNaN},
                      /*twice_in_low=*/exponent < 10);
  }
  AddWithAttributes(cases, "pow", "0", {{"exponent", 0.0}}, Normal(), {-0.0, 0, -2, 1, kInfinity, kNaN});
  AddWithAttributes(cases, "pow", "3_of_any_sign", {{"exponent", 3.0}}, Normal(), {-3, 3});
  AddWithAttributes(cases, "clamp", "to_unit", {{"minimum", 0.0}, {"maximum", 1.0}}, Normal(0.5, 1),
                    {-0.0, 0, 1, -1, 2, kInfinity, -kInfinity, kNaN});
  // Limits that f16 and bf16 round.
  AddWithAttributes(cases, "clamp", "to_tenths", {{"minimum", -0.1}, {"maximum", 0.3}}, Normal(), {-1, -0.1, 0.3, 1});
  AddWithAttributes(cases, "clamp", "from_below", {{"minimum", -kInfinity}, {"maximum", 0.5}}, Normal(),
                    {-kInfinity, 0, kInfinity, kNaN});
}

void AddPrelu(std::vector<OpCase>& cases) {
  struct Layout {
    const char* name;
    Shape x;
    std::int64_t slopes;
    const char* data_format;
  };
  const std::vector<Layout> layouts = {
      {"scalar", {}, 1, "NCHW"},
      {"one_slope", {3, 5}, 1, "NCHW"},
      {"one_slope_large", {7, 20001}, 1, "NCHW"},
      {"vectors", {9, 6}, 6, "NCHW"},
      {"sequences", {4, 3, 17}, 3, "NCHW"},
      {"nchw", {2, 6, 5, 7}, 6, "NCHW"},
      {"nchw_pixels", {4, 33, 1, 1}, 33, "NCHW"},
      {"nhwc", {2, 5, 7, 6}, 6, "NHWC"},
      {"nhwc_wide", {2, 3, 3, 700}, 700, "NHWC"},
      {"rank_5", {2, 3, 2, 3, 4}, 3, "NHWC"},  // images have rank 4: the channel is axis 1 here
      {"nchw_large", {8, 16, 32, 32}, 16, "NCHW"},
  };
  for (const Layout& layout : layouts) {
    const Attributes attributes = {{"data_format", std::string(layout.data_format)}};
    const Shape slopes = {layout.slopes};
    cases.push_back({absl::StrCat("prelu/", layout.name),
                     "prelu",
                     attributes,
                     {Variable(layout.x), Variable(slopes)},
                     {F32(layout.x)}});
    cases.push_back({absl::StrCat("prelu_grad/", layout.name),
                     "prelu_grad",
                     attributes,
                     {Variable(layout.x), Variable(layout.x), Variable(slopes)},
                     {F32(layout.x), F32(slopes)}});
  }
}

}  // namespace

std::vector<OpCase> ActivationCases() {
  std::vector<OpCase> cases;
  AddUnaries(cases);
  AddParameterised(cases);
  AddPrelu(cases);
  return cases;
}

}  // namespace mpc::op_cases
