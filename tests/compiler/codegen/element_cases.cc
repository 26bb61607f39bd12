#include "tests/compiler/codegen/element_cases.h"

#include <cmath>

#include "kernels/scalar/activation.h"
#include "kernels/scalar/binary.h"
#include "kernels/scalar/cast.h"
#include "kernels/scalar/clip.h"
#include "kernels/scalar/integer.h"
#include "kernels/scalar/losses.h"
#include "kernels/scalar/philox.h"
#include "kernels/scalar/unary.h"

namespace mpc::test {
namespace {

using Case = ElementCase;

Expected ExpectedOf(float (*f)(float)) {
  return [f](const auto& x, std::int64_t) { return std::vector{Word(f(AsFloat(x[0])))}; };
}
Expected ExpectedOf(float (*f)(float, float)) {
  return [f](const auto& x, std::int64_t) { return std::vector{Word(f(AsFloat(x[0]), AsFloat(x[1])))}; };
}
Expected ExpectedOf(float (*f)(float, float, float)) {
  return [f](const auto& x, std::int64_t) { return std::vector{Word(f(AsFloat(x[0]), AsFloat(x[1]), AsFloat(x[2])))}; };
}

template <typename Functor>
Expected Unary() {
  return ExpectedOf(+[](float x) { return Functor::Apply(x); });
}
template <typename Functor>
Expected Binary() {
  return ExpectedOf(+[](float a, float b) { return Functor::Apply(a, b); });
}
/// Both gradients of operands dy, a and b.
template <typename Functor>
Expected Pair() {
  return [](const auto& x, std::int64_t) {
    const float dy = AsFloat(x[0]), a = AsFloat(x[1]), b = AsFloat(x[2]);
    return std::vector{Word(Functor::First(dy, a, b)), Word(Functor::Second(dy, a, b))};
  };
}
/// Of the shared operand dloss, divided by `divisor`, and two elements.
template <typename Functor, int kDivisor>
Expected LossGrad() {
  return ExpectedOf(+[](float dloss, float p, float t) {
    return Functor::kFactor * dloss / static_cast<float>(kDivisor) * Functor::Slope(p, t);
  });
}
Expected Chosen(std::size_t if_true, std::size_t if_false) {
  return [=](const auto& x, std::int64_t) { return std::vector{x[0] != 0 ? x[if_true] : x[if_false]}; };
}
Expected Same() {
  return [](const auto& x, std::int64_t) { return std::vector{x[0]}; };
}
template <typename Integer>
Expected Saturated() {
  return [](const auto& x, std::int64_t) {
    return std::vector{Word(std::int64_t{scalar::Saturate<Integer>(static_cast<std::int64_t>(x[0]))})};
  };
}
template <typename Integer>
Expected SaturatedFloat() {
  return [](const auto& x, std::int64_t) {
    return std::vector{Word(std::int64_t{scalar::Saturate<Integer>(AsFloat(x[0]))})};
  };
}

std::vector<Case> ForwardCases() {
  return {
      {"relu", "f", "f", "", Unary<scalar::ReluOp>()},
      {"sigmoid", "f", "f", "", Unary<scalar::SigmoidOp>()},
      {"tanh", "f", "f", "", Unary<scalar::TanhOp>()},
      {"exp", "f", "f", "", Unary<scalar::ExpOp>()},
      {"log", "f", "f", "", Unary<scalar::LogOp>()},
      {"sqrt", "f", "f", "", Unary<scalar::SqrtOp>()},
      {"neg", "f", "f", "", Unary<scalar::NegOp>()},
      {"abs", "f", "f", "", Unary<scalar::AbsOp>()},
      {"floor", "f", "f", "", Unary<scalar::FloorOp>()},
      {"square", "f", "f", "", Unary<scalar::SquareOp>()},
      {"log1p", "f", "f", "", Unary<scalar::Log1pOp>()},
      {"silu", "f", "f", "", Unary<scalar::SiluOp>()},
      {"hard_swish", "f", "f", "", Unary<scalar::HardSwishOp>()},
      {"erf", "f", "f", "", Unary<scalar::ErfOp>()},
      {"gelu", "f", "f", "", Unary<scalar::GeluOp>()},
      {"gelu", "f", "f", "approximate = #mpc.approximation<tanh>", Unary<scalar::GeluTanhOp>()},
      {"leaky_relu", "f", "f", "alpha = 0.1 : f32",
       ExpectedOf(+[](float x) { return scalar::LeakyReluOp(0.1f).Apply(x); })},
      {"clamp", "f", "f", "minimum = -1.0 : f32, maximum = 2.5 : f32",
       ExpectedOf(+[](float x) { return scalar::ClampOp(-1.0f, 2.5f).Apply(x); })},
      {"prelu", "fO", "f", "", Binary<scalar::PreluOp>()},
      {"add_scalar", "f", "f", "value = 0.1 : f32",
       ExpectedOf(+[](float x) { return scalar::AddScalarOp::Apply(x, 0.1f); })},
      {"mul_scalar", "f", "f", "value = 0.1 : f32",
       ExpectedOf(+[](float x) { return scalar::MulScalarOp::Apply(x, 0.1f); })},
      {"add", "ff", "f", "", Binary<scalar::AddOp>()},
      {"sub", "ff", "f", "", Binary<scalar::SubOp>()},
      {"mul", "ff", "f", "", Binary<scalar::MulOp>()},
      {"div", "ff", "f", "", Binary<scalar::DivOp>()},
      {"div", "fF", "f", "", Binary<scalar::DivOp>()},
      {"maximum", "ff", "f", "", Binary<scalar::MaximumOp>()},
      {"minimum", "ff", "f", "", Binary<scalar::MinimumOp>()},
      {"sum_n", "fff", "f", "", ExpectedOf(+[](float a, float b, float c) { return a + b + c; })},
      {"stop_gradient", "f", "f", "", Same()},
      {"stop_gradient", "l", "l", "", Same()},
      {"stop_gradient", "b", "b", "", Same()},
      {"broadcast_to", "f", "f", "shape = array<i64: 16>", Same()},
      {"broadcast_to", "i", "i", "shape = array<i64: 16>", Same()},
      {"broadcast_to", "b", "b", "shape = array<i64: 16>", Same()},
      {"scale_loss", "fF", "f", "", Binary<scalar::MulOp>()},
      {"unscale", "fF", "f", "", ExpectedOf(+[](float g, float scale) { return g * (1.0f / scale); })},
      {"clip_by_norm", "fF", "f", "max_norm = 0.5 : f32",
       ExpectedOf(+[](float g, float norm) { return g * scalar::ClipFactor(double{norm}, 0.5f); })},
  };
}

std::vector<Case> GradientCases() {
  return {
      {"relu_grad", "ff", "f", "", Binary<scalar::ReluGradOp>()},
      {"sigmoid_grad", "ff", "f", "", Binary<scalar::SigmoidGradOp>()},
      {"tanh_grad", "ff", "f", "", Binary<scalar::TanhGradOp>()},
      {"sqrt_grad", "ff", "f", "", Binary<scalar::SqrtGradOp>()},
      {"abs_grad", "ff", "f", "", Binary<scalar::AbsGradOp>()},
      {"square_grad", "ff", "f", "", Binary<scalar::SquareGradOp>()},
      {"log1p_grad", "ff", "f", "", Binary<scalar::Log1pGradOp>()},
      {"silu_grad", "ff", "f", "", Binary<scalar::SiluGradOp>()},
      {"hard_swish_grad", "ff", "f", "", Binary<scalar::HardSwishGradOp>()},
      {"erf_grad", "ff", "f", "", Binary<scalar::ErfGradOp>()},
      {"gelu_grad", "ff", "f", "", Binary<scalar::GeluGradOp>()},
      {"gelu_grad", "ff", "f", "approximate = #mpc.approximation<tanh>", Binary<scalar::GeluTanhGradOp>()},
      {"leaky_relu_grad", "ff", "f", "alpha = 0.1 : f32",
       ExpectedOf(+[](float dy, float x) { return scalar::LeakyReluOp(0.1f).Apply(dy, x); })},
      {"clamp_grad", "ff", "f", "minimum = -1.0 : f32, maximum = 2.5 : f32",
       ExpectedOf(+[](float dy, float x) { return scalar::ClampOp(-1.0f, 2.5f).Apply(dy, x); })},
      {"div_grad", "fff", "f", "",
       ExpectedOf(+[](float dy, float y, float b) { return scalar::DivGradOp::First(dy, y, b); })},
      {"maximum_grad", "fff", "ff", "", Pair<scalar::MaximumGradOp>()},
      {"minimum_grad", "fff", "ff", "", Pair<scalar::MinimumGradOp>()},
      {"mse_grad", "Fff", "f", "reduction = #mpc.reduction<mean>", LossGrad<scalar::SquaredError, 16>()},
      {"mse_grad", "fff", "f", "reduction = #mpc.reduction<none>", LossGrad<scalar::SquaredError, 1>()},
      {"bce_with_logits_grad", "Fff", "f", "reduction = #mpc.reduction<mean>",
       LossGrad<scalar::BinaryCrossEntropy, 16>()},
      {"bce_with_logits_grad", "Fff", "f", "reduction = #mpc.reduction<sum>",
       LossGrad<scalar::BinaryCrossEntropy, 1>()},
      {"batch_norm_apply", "rffff", "r", "",
       [](const auto& x, std::int64_t) {
         const float scale = AsFloat(x[4]) * AsFloat(x[1]);
         return std::vector{Word((AsFloat(x[0]) - AsFloat(x[3])) * scale + AsFloat(x[2]))};
       }},
      {"batch_norm_infer", "rffff", "r", "epsilon = 1.0e-3 : f32",
       [](const auto& x, std::int64_t) {
         const float scale = AsFloat(x[1]) / std::sqrt(AsFloat(x[4]) + 1e-3f);
         return std::vector{Word((AsFloat(x[0]) - AsFloat(x[3])) * scale + AsFloat(x[2]))};
       }},
  };
}

template <typename Relation>
Case Comparison(const char* op, const char* operands) {
  const std::string kinds = operands;
  return {op, operands, "b", "", [kinds](const auto& x, std::int64_t) {
            const auto number = [&](std::size_t k) {
              return kinds[k] == 'f' ? double{AsFloat(x[k])} : static_cast<double>(static_cast<std::int64_t>(x[k]));
            };
            if (kinds == "ll") {
              const auto a = static_cast<std::int64_t>(x[0]), b = static_cast<std::int64_t>(x[1]);
              return std::vector{Word(bool{Relation::Apply(a, b)})};
            }
            return std::vector{Word(bool{Relation::Apply(number(0), number(1))})};
          }};
}

/// Integer arithmetic. A single operand counts as both.
template <typename I>
Case OfIntegers(const char* op, const char* operands, I (*f)(I, I)) {
  const std::string kinds = operands;
  return {op, operands, kinds.substr(0, 1), "", [f](const auto& x, std::int64_t) {
            const auto number = [&](std::size_t k) { return static_cast<I>(static_cast<std::int64_t>(x[k])); };
            return std::vector{Word(std::int64_t{f(number(0), number(x.size() - 1))})};
          }};
}
template <typename Functor>
void AddBinaryOfIntegers(std::vector<Case>& cases, const char* op) {
  cases.push_back(OfIntegers<std::int32_t>(op, "ii", [](auto a, auto b) { return Functor::Apply(a, b); }));
  cases.push_back(OfIntegers<std::int64_t>(op, "ll", [](auto a, auto b) { return Functor::Apply(a, b); }));
}
template <typename Functor>
void AddUnaryOfIntegers(std::vector<Case>& cases, const char* op) {
  cases.push_back(OfIntegers<std::int32_t>(op, "i", [](auto a, auto) { return Functor::Apply(a); }));
  cases.push_back(OfIntegers<std::int64_t>(op, "l", [](auto a, auto) { return Functor::Apply(a); }));
}

std::vector<Case> IntegerCases() {
  std::vector<Case> cases;
  AddBinaryOfIntegers<scalar::IntAddOp>(cases, "int_add");
  AddBinaryOfIntegers<scalar::IntSubOp>(cases, "int_sub");
  AddBinaryOfIntegers<scalar::IntMulOp>(cases, "int_mul");
  AddBinaryOfIntegers<scalar::IntFloorDivOp>(cases, "int_floor_div");
  AddBinaryOfIntegers<scalar::IntModOp>(cases, "int_mod");
  AddBinaryOfIntegers<scalar::IntMaximumOp>(cases, "int_maximum");
  AddBinaryOfIntegers<scalar::IntMinimumOp>(cases, "int_minimum");
  AddUnaryOfIntegers<scalar::IntNegOp>(cases, "int_neg");
  AddUnaryOfIntegers<scalar::IntAbsOp>(cases, "int_abs");
  return cases;
}

std::vector<Case> SelectionCases() {
  return {
      Comparison<scalar::EqualOp>("equal", "ff"),
      Comparison<scalar::EqualOp>("equal", "ll"),
      Comparison<scalar::EqualOp>("equal", "fi"),
      Comparison<scalar::GreaterOp>("greater", "ff"),
      Comparison<scalar::GreaterOp>("greater", "ll"),
      Comparison<scalar::LessOp>("less", "ff"),
      Comparison<scalar::LessOp>("less", "if"),
      Comparison<scalar::NotEqualOp>("not_equal", "ff"),
      Comparison<scalar::NotEqualOp>("not_equal", "ll"),
      Comparison<scalar::GreaterEqualOp>("greater_equal", "ff"),
      Comparison<scalar::GreaterEqualOp>("greater_equal", "fi"),
      Comparison<scalar::LessEqualOp>("less_equal", "ff"),
      Comparison<scalar::LessEqualOp>("less_equal", "ll"),
      {"logical_and", "bb", "b", "", [](const auto& x, std::int64_t) { return std::vector{x[0] & x[1]}; }},
      {"logical_or", "bb", "b", "", [](const auto& x, std::int64_t) { return std::vector{x[0] | x[1]}; }},
      {"logical_not", "b", "b", "", [](const auto& x, std::int64_t) { return std::vector{x[0] ^ 1}; }},
      {"where", "bff", "f", "", Chosen(1, 2)},
      {"where", "bll", "l", "", Chosen(1, 2)},
      {"where", "bii", "i", "", Chosen(1, 2)},
      {"where", "byy", "y", "", Chosen(1, 2)},
      {"where", "bbb", "b", "", Chosen(1, 2)},
      {"select", "bff", "f", "", Chosen(1, 2)},
      {"select", "Bff", "f", "", Chosen(1, 2)},
      {"select", "bll", "l", "", Chosen(1, 2)},
      {"select", "bbb", "b", "", Chosen(1, 2)},
      {"cast", "f", "h", "", Same()},
      {"cast", "h", "f", "user = true", Same()},
      {"cast", "l", "i", "", Saturated<std::int32_t>()},
      {"cast", "l", "y", "", Saturated<std::int8_t>()},
      {"cast", "i", "y", "", Saturated<std::int8_t>()},
      {"cast", "i", "l", "", Same()},
      {"cast", "f", "y", "", SaturatedFloat<std::int8_t>()},
      {"cast", "f", "i", "", SaturatedFloat<std::int32_t>()},
      {"cast", "f", "l", "", SaturatedFloat<std::int64_t>()},
      {"cast", "b", "l", "", Same()},
      {"cast", "b", "f", "", [](const auto& x, std::int64_t) { return std::vector{Word(x[0] != 0 ? 1.0f : 0.0f)}; }},
      {"cast", "f", "b", "", [](const auto& x, std::int64_t) { return std::vector{Word(AsFloat(x[0]) != 0.0f)}; }},
      {"cast", "i", "b", "", [](const auto& x, std::int64_t) { return std::vector{Word(x[0] != 0)}; }},
      {"cast", "l", "f", "",
       [](const auto& x, std::int64_t) {
         return std::vector{Word(static_cast<float>(static_cast<std::int64_t>(x[0])))};
       }},
      {"dropout", "fLI", "f", "p = 0.3 : f32, call_site = 7 : i64",
       [](const auto& x, std::int64_t i) {
         const bool kept = DropoutKeeps(x[1], static_cast<std::uint32_t>(x[2]), 7, static_cast<std::uint64_t>(i), 0.3f);
         return std::vector{Word(kept ? AsFloat(x[0]) * DropoutScale(0.3f) : 0.0f)};
       }},
  };
}

}  // namespace

std::vector<ElementCase> ElementCases() {
  std::vector<Case> cases = ForwardCases();
  for (const Case& more : GradientCases()) cases.push_back(more);
  for (const Case& more : IntegerCases()) cases.push_back(more);
  for (const Case& more : SelectionCases()) cases.push_back(more);
  return cases;
}

}  // namespace mpc::test
