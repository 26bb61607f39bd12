// What kernels/scalar computes, by hand and at the borders of its cases. Reference and kernels may share a rule, and
// their tests draw values that seldom lie on a border.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>

#include "kernels/scalar/activation.h"
#include "kernels/scalar/integer.h"
#include "kernels/scalar/loss_scale.h"
#include "kernels/scalar/losses.h"
#include "kernels/scalar/moments.h"
#include "kernels/scalar/reduction.h"
#include "kernels/scalar/softmax.h"
#include "kernels/scalar/sort_key.h"

namespace mpc::scalar {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(ScalarRules, ClampPassesGradientsOnItsLimits) {
  const ClampOp clamp(-1.0f, 2.0f);
  for (const float x : {-1.0f, 0.5f, 2.0f}) EXPECT_EQ(clamp.Apply(3.0f, x), 3) << x;
  for (const float x : {-1.5f, 2.5f, kNan}) EXPECT_EQ(clamp.Apply(3.0f, x), 0) << x;
}

TEST(ScalarRules, DerivativesOfSineAndCosineHoldForLargeNumbers) {
  for (const float x : {0x1.8p31f, -0x1.8p31f, 0x1p60f}) {
    EXPECT_EQ(SinGradOp::Slow(2.0f, x), 2.0f * std::cos(x)) << x;
    EXPECT_EQ(CosGradOp::Slow(2.0f, x), -2.0f * std::sin(x)) << x;
  }
}

TEST(ScalarRules, AConstantPowerHasNoDerivative) {
  const PowGradOp constant(Attributes{{"exponent", 0.0}});
  for (const float x : {0.0f, -1.0f, 3.0f, kInfinity, kNan}) EXPECT_EQ(constant.Apply(2.0f, x), 0) << x;
}

TEST(ScalarRules, PowersBeyondF32AreInfiniteOrZero) {
  EXPECT_EQ(static_cast<float>(Power(10.0)(1e38f)), kInfinity);
  EXPECT_EQ(static_cast<float>(Power(-10.0)(1e38f)), 0);
  EXPECT_EQ(static_cast<float>(Power(10.0)(1e-38f)), 0);
  EXPECT_EQ(static_cast<float>(Power(-10.0)(1e-38f)), kInfinity);
}

TEST(ScalarRules, BinaryCrossEntropyIsThatOfItsFormula) {
  for (const double x : {-3.0, -0.25, 0.5, 2.0}) {
    for (const double z : {0.0, 0.25, 1.0}) {
      const double loss = std::log1p(std::exp(x)) - x * z;
      const double slope = 1 / (1 + std::exp(-x)) - z;
      const auto logit = static_cast<float>(x), label = static_cast<float>(z);
      // A few roundings of terms below 8.
      EXPECT_NEAR(BinaryCrossEntropy::Loss(logit, label), loss, 8 * 0x1p-22) << x << " " << z;
      EXPECT_NEAR(BinaryCrossEntropy::Slope(logit, label), slope, 0x1p-21) << x << " " << z;
    }
  }
  // An infinite logit is right about one label, and wrong about all others.
  for (const float z : {0.0f, 0.25f, 1.0f}) {
    EXPECT_EQ(BinaryCrossEntropy::Loss(kInfinity, z), z == 1 ? 0 : kInfinity) << z;
    EXPECT_EQ(BinaryCrossEntropy::Loss(-kInfinity, z), z == 0 ? 0 : kInfinity) << z;
    EXPECT_EQ(BinaryCrossEntropy::Slope(kInfinity, z), 1 - z) << z;
    EXPECT_EQ(BinaryCrossEntropy::Slope(-kInfinity, z), -z) << z;
    EXPECT_TRUE(std::isnan(BinaryCrossEntropy::Loss(std::nanf(""), z))) << z;
  }
  // Where 1 + e is 1 the logarithm is e.
  for (const float x : {-17.5f, -18.0f, -50.0f}) EXPECT_EQ(BinaryCrossEntropy::Log1pExp(x), Exp(x)) << x;
}

TEST(ScalarRules, AClassWithoutWeightAddsNothing) {
  EXPECT_EQ(CrossEntropyTerm(0.0f, -kInfinity, 1.0f), 0);
  EXPECT_EQ(CrossEntropyTerm(0.5f, -1.0f, 1.0f), 1);
  EXPECT_EQ(CrossEntropySlope(0.25f, 0.5f, 0.75f), 0.125f);
}

TEST(ScalarRules, SoftmaxGradientsAreThoseOfTheirFormulas) {
  EXPECT_EQ(SoftmaxGradOp::Result(3.0f, 0.5f, 1.0f), 1);
  // Below 1 in size: the error of an exponential, which is 2.8 units of 2^-24, and of two roundings.
  EXPECT_NEAR(LogSoftmaxGradOp::Result(1.0f, -1.0f, 2.0f), 1 - 2 * std::exp(-1.0), 0x1p-21);
}

TEST(ScalarRules, AVarianceIsNeverNegative) {
  const auto rounded = Moments<float>::FromSums(3.0, std::nextafter(3.0, 0.0), 3.0);
  EXPECT_EQ(rounded.mean, 1);
  EXPECT_EQ(rounded.variance, 0);
  EXPECT_EQ(Moments<float>::FromSums(4.0, 10.0, 2.0).variance, 1);
  EXPECT_TRUE(std::isnan(Moments<float>::FromSums(4.0, kNan, 2.0).variance));
}

TEST(ScalarRules, MaximaTreatNanAsTheySay) {
  for (const auto& [a, b] : {std::pair(1.0f, 2.0f), std::pair(2.0f, 1.0f)}) EXPECT_EQ(MaxNumOp::Combine(a, b), 2);
  EXPECT_EQ(MaxNumOp::Combine(1.0f, kNan), 1);
  EXPECT_TRUE(std::isnan(MaximumOrNanOp::Combine(1.0f, kNan)));
  EXPECT_TRUE(std::isnan(MaximumOrNanOp::Combine(kNan, 1.0f)));
  EXPECT_TRUE(std::isnan(MinimumOrNanOp::Combine(1.0f, kNan)));
  EXPECT_TRUE(std::isnan(MinimumOrNanOp::Combine(kNan, 1.0f)));
  EXPECT_EQ(MinimumOrNanOp::Combine(1.0f, 2.0f), 1);
}

TEST(ScalarRules, AProductWithoutOneFactorNeedsNoQuotientByZero) {
  const auto product = [](std::initializer_list<float> factors) {
    FactorsOp::Value all = FactorsOp::Identity();
    for (float x : factors) all = FactorsOp::Combine(all, FactorsOp::Of(x));
    return all;
  };
  EXPECT_EQ(FactorsOp::Without(product({2, 3, 4}), 3), 8);
  EXPECT_EQ(FactorsOp::Without(product({2, 0, 4}), 0), 8);
  EXPECT_EQ(FactorsOp::Without(product({2, 0, 4}), 2), 0);
  EXPECT_EQ(FactorsOp::Without(product({0, 0, 0, 4}), 0), 0);
}

template <typename I>
void ExpectWrappingArithmetic() {
  constexpr I kLeast = std::numeric_limits<I>::min(), kMost = std::numeric_limits<I>::max();
  EXPECT_EQ(IntAddOp::Apply<I>(kMost, 1), kLeast);
  EXPECT_EQ(IntSubOp::Apply<I>(kLeast, 1), kMost);
  EXPECT_EQ(IntMulOp::Apply<I>(kMost, 2), -2);
  EXPECT_EQ(IntNegOp::Apply<I>(kLeast), kLeast);
  EXPECT_EQ(IntAbsOp::Apply<I>(kLeast), kLeast);
  EXPECT_EQ(IntAbsOp::Apply<I>(-5), 5);
  EXPECT_EQ(IntFloorDivOp::Apply<I>(kLeast, -1), kLeast);
  EXPECT_EQ(IntModOp::Apply<I>(kLeast, -1), 0);
  EXPECT_EQ(IntMaximumOp::Apply<I>(kLeast, kMost), kMost);
  EXPECT_EQ(IntMinimumOp::Apply<I>(kLeast, kMost), kLeast);
  for (I a : {I{-7}, I{7}}) {
    for (I b : {I{-3}, I{-2}, I{-1}, I{0}, I{1}, I{2}, I{7}}) {
      const I quotient = IntFloorDivOp::Apply(a, b), rest = IntModOp::Apply(a, b);
      EXPECT_EQ(quotient, b == 0 ? 0 : static_cast<I>(std::floor(static_cast<double>(a) / static_cast<double>(b))));
      EXPECT_EQ(quotient * b + rest, a) << a << ", " << b;
    }
  }
}

TEST(ScalarRules, ArithmeticOfIntegersWraps) {
  ExpectWrappingArithmetic<std::int32_t>();
  ExpectWrappingArithmetic<std::int64_t>();
}

TEST(ScalarRules, SortKeysAscendWithValuesThenWithIndices) {
  const float ascending[] = {-kInfinity, -2.0f, -0x1p-149f, 0.0f, 0x1p-149f, 3.0f, kInfinity, kNan};
  for (std::size_t i = 1; i < std::size(ascending); ++i) {
    EXPECT_LT(SortKey(ascending[i - 1], 9, false), SortKey(ascending[i], 3, false)) << i;
    EXPECT_GT(SortKey(ascending[i - 1], 3, true), SortKey(ascending[i], 9, true)) << i;
  }
  for (bool descending : {false, true}) {
    EXPECT_LT(SortKey(0.0f, 1, descending), SortKey(-0.0f, 2, descending));
    EXPECT_LT(SortKey(-0.0f, 1, descending), SortKey(0.0f, 2, descending));
    EXPECT_LT(SortKey(-kNan, 1, descending), SortKey(kNan, 2, descending));
    EXPECT_LT(SortKey(kNan, 0x7ffffffe, descending), kLastKey);
    EXPECT_EQ(IndexOfKey(SortKey(-5.0f, 0x7ffffffe, descending)), 0x7ffffffe);
  }
}

int Position(ArgmaxOp::Value a, ArgmaxOp::Value b) {
  const int position = ArgmaxOp::Combine(a, b).index;
  EXPECT_EQ(ArgmaxOp::Combine(b, a).index, position) << "the order of two parts does not count";
  return position;
}

TEST(ScalarRules, ArgmaxTakesTheFirstOfEqualsAndTheFirstNan) {
  EXPECT_EQ(Position({1, 5}, {1, 3}), 3);
  EXPECT_EQ(Position({1, 3}, {2, 5}), 5);
  EXPECT_EQ(Position({kNan, 5}, {2, 3}), 5);
  EXPECT_EQ(Position({kNan, 5}, {kNan, 3}), 3);
  EXPECT_EQ(Position({-kInfinity, 4}, ArgmaxOp::Identity()), 4);
}

/// The scale after a step with a gradient that is not finite, or without.
float ScaleAfter(int first_bad, float scale, float growth, float minimum, float maximum) {
  const LossScaleOptions options{growth, 0.5f, minimum, maximum, 1, 1, true, true};
  return NextState(first_bad, {scale, 0, 0, 0, 0}, options).scale;
}

TEST(ScalarRules, LossScalesStayNormalWhateverTheLimits) {
  EXPECT_EQ(ScaleAfter(0, 0x1p-126f, 2, 0, kInfinity), 0x1p-126f);
  EXPECT_EQ(ScaleAfter(-1, 0x1p126f, 2, 0, kInfinity), 0x1p126f);
  // A scale that would overflow stays.
  EXPECT_EQ(ScaleAfter(-1, 0x1p125f, 8, 0, kInfinity), 0x1p125f);
}

}  // namespace
}  // namespace mpc::scalar
