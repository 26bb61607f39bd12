// Element-wise functions of numbers that are compositions: errors against f64, special values, derivatives.
#include "frontend/graph/math_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/frontend/eighths.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/loss_and_gradient.h"
#include "tests/frontend/numeric_gradient.h"

namespace mpc {
namespace {

using ::testing::Each;
using testing::Eighths;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::IsNan;
using testing::kInfinity;
using testing::kNan;
using testing::LossAndGradient;

const Tensor kNotFinite = Tensor::From({kNan, kInfinity, -kInfinity}, {3});

/// Both signs of numbers from `first` to `last`, each 1.031 times the one before it.
std::vector<float> Sweep(float first, float last, bool negative = true) {
  std::vector<float> points;
  float x = first;
  while (x <= last) {
    points.push_back(x);
    if (negative) points.push_back(-x);
    x *= 1.031f;
  }
  return points;
}

/// Expects the error of `function` to be at most `units` of 2^-23 of the exact value, where that is a normal number.
void ExpectUnits(const char* name, const testing::TensorFunction& function, const std::function<double(double)>& exact,
                 const std::vector<float>& points, double units) {
  const std::vector<float> values =
      function(Tensor::From(points, {static_cast<std::int64_t>(points.size())})).ToFloats();
  ASSERT_EQ(values.size(), points.size());
  double worst = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double expected = exact(static_cast<double>(points[i]));
    if (std::abs(expected) < 0x1p-126 || std::abs(expected) > 0x1.fffffep127) continue;
    const double error = std::abs(values[i] - expected) / std::abs(expected) * 0x1p23;
    EXPECT_LE(error, units) << name << " of " << points[i];
    worst = std::max(worst, error);
  }
  ::testing::Test::RecordProperty(name, std::to_string(worst));
}

TEST(MathOps, AreAsExactAsTheySay) {
  const std::vector<float> all = Sweep(0x1p-100f, 300), positive = Sweep(0x1p-120f, 0x1p120f, /*negative=*/false);
  ExpectUnits(
      "expm1", [](const Tensor& x) { return expm1(x); }, [](double x) { return std::expm1(x); }, all, 4);
  ExpectUnits(
      "tan", [](const Tensor& x) { return tan(x); }, [](double x) { return std::tan(x); }, all, 2);
  ExpectUnits(
      "sinh", [](const Tensor& x) { return sinh(x); }, [](double x) { return std::sinh(x); }, all, 16);
  ExpectUnits(
      "cosh", [](const Tensor& x) { return cosh(x); }, [](double x) { return std::cosh(x); }, all, 11);
  ExpectUnits(
      "log2", [](const Tensor& x) { return log2(x); }, [](double x) { return std::log2(x); }, positive, 2);
  ExpectUnits(
      "log10", [](const Tensor& x) { return log10(x); }, [](double x) { return std::log10(x); }, positive, 2);
}

// A derivative is a sum of products of a few numbers of the errors above, of which none is larger than the result but
// for cosh(x) - 1 in that of sinh: fewer than 64 units.
TEST(MathOps, DerivativesKeepTheirDigits) {
  const std::vector<float> points = Sweep(0x1p-40f, 80);
  const auto count = static_cast<std::int64_t>(points.size());
  const struct {
    const char* name;
    testing::TensorFunction function;
    std::function<double(double)> slope;
  } cases[] = {{"expm1", [](const Tensor& x) { return expm1(x); }, [](double x) { return std::exp(x); }},
               {"sinh", [](const Tensor& x) { return sinh(x); }, [](double x) { return std::cosh(x); }},
               {"cosh", [](const Tensor& x) { return cosh(x); }, [](double x) { return std::sinh(x); }}};
  for (const auto& each : cases) {
    LossAndGradient step(Tensor::From(points, {count}),
                         [&](const Tensor& x, const Tensor& zeros) { return each.function(x) + zeros; });
    const std::vector<float> slopes = step(Tensor::Zeros({count})).second.ToFloats();
    ASSERT_EQ(slopes.size(), points.size());
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double expected = each.slope(static_cast<double>(points[i]));
      EXPECT_NEAR(slopes[i], expected, 64 * 0x1p-23 * std::abs(expected)) << each.name << " of " << points[i];
    }
  }
  ExpectGradient([](const Tensor& x) { return tan(x); }, Eighths(2), 5e-3f);
  ExpectGradient([](const Tensor& x) { return log2(x + 2.0) + log10(x + 2.0); }, Eighths(2));
}

TEST(MathOps, OfZeroInfinityAndNan) {
  EXPECT_THAT(expm1(kNotFinite).ToFloats(), ElementsAre(IsNan(), kInfinity, -1));
  EXPECT_THAT(sinh(kNotFinite).ToFloats(), ElementsAre(IsNan(), kInfinity, -kInfinity));
  EXPECT_THAT(cosh(kNotFinite).ToFloats(), ElementsAre(IsNan(), kInfinity, kInfinity));
  EXPECT_THAT(tan(kNotFinite).ToFloats(), Each(IsNan()));
  EXPECT_THAT(log2(kNotFinite).ToFloats(), ElementsAre(IsNan(), kInfinity, IsNan()));
  EXPECT_THAT(log10(kNotFinite).ToFloats(), ElementsAre(IsNan(), kInfinity, IsNan()));
  const Tensor zero = Tensor::From({0.0f, -0.0f}, {2});
  EXPECT_THAT(expm1(zero).ToFloats(), Each(0));
  EXPECT_THAT(sinh(zero).ToFloats(), Each(0));
  EXPECT_THAT(cosh(zero).ToFloats(), Each(1));
  EXPECT_THAT(log2(zero).ToFloats(), Each(-kInfinity));
  LossAndGradient step(Tensor::From({0.0f, -0.0f, 200.0f}, {3}),
                       [](const Tensor& x, const Tensor& zeros) { return sinh(x) + cosh(x) + zeros; });
  EXPECT_THAT(step(Tensor::Zeros({3})).second.ToFloats(), ElementsAre(1, 1, 0));
}

TEST(MathOps, OfALowTensorComputeInF32) {
  const Tensor low = Tensor::From({-0.001f, -0.4f, 0.01f, 3.0f, 11.0f}, {5}).To(DType::kF16);
  const std::vector<float> points = low.ToFloats();
  const struct {
    testing::TensorFunction function;
    double (*exact)(double);
  } cases[] = {{[](const Tensor& x) { return expm1(x); }, std::expm1},
               {[](const Tensor& x) { return tan(x); }, std::tan},
               {[](const Tensor& x) { return sinh(x); }, std::sinh},
               {[](const Tensor& x) { return cosh(x); }, std::cosh}};
  for (const auto& [function, exact] : cases) {
    const Tensor y = function(low);
    ASSERT_EQ(y.dtype(), DType::kF16);
    const std::vector<float> values = y.To(DType::kF32).ToFloats();
    // One rounding to f16, of a number that is exact to 16 * 2^-23.
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double expected = exact(static_cast<double>(points[i]));
      EXPECT_NEAR(values[i], expected, (0x1p-11 + 16 * 0x1p-23) * std::abs(expected)) << points[i];
    }
  }
}

/// expm1, as a Cell.
class ExpLessOne : public nn::Cell {
 public:
  MPC_CELL(ExpLessOne)
  Tensor Construct(const Tensor& x) { return expm1(x); }
};

TEST(MathOps, OfALowCellComputeInF32) {
  ExpLessOne low;
  low.ToFloat(DType::kF16);
  // In f16 the sum of the exponential and -1 would lose five bits of 2^-6.
  const float x = 0x1.554p-6f;
  const double expected = std::expm1(static_cast<double>(x));
  EXPECT_NEAR(low(Tensor::From({x}, {1})).ToFloats()[0], expected, (0x1p-11 + 16 * 0x1p-23) * expected);
}

TEST(Rounding, IsExactAndPyTorchs) {
  const Tensor x = Tensor::From({-2.5f, -1.5f, -0.5f, -0.49999997f, -0.1f, 0.5f, 0.49999997f, 1.5f, 2.5f, 1.25f,
                                 8388609.0f, -8388607.5f, 3e38f, -1e-30f},
                                {14});
  EXPECT_THAT(ceil(x).ToFloats(), ElementsAre(-2, -1, 0, 0, 0, 1, 1, 2, 3, 2, 8388609, -8388607, 3e38f, 0));
  EXPECT_THAT(trunc(x).ToFloats(), ElementsAre(-2, -1, 0, 0, 0, 0, 0, 1, 2, 1, 8388609, -8388607, 3e38f, 0));
  EXPECT_THAT(round(x).ToFloats(), ElementsAre(-2, -2, 0, 0, 0, 0, 0, 2, 2, 1, 8388609, -8388608, 3e38f, 0));
  for (const float zero : round(Tensor::From({-0.5f, -0.1f, -0.0f}, {3})).ToFloats()) EXPECT_TRUE(std::signbit(zero));
  for (const float zero : round(Tensor::From({0.5f, 0.1f, 0.0f}, {3})).ToFloats()) EXPECT_FALSE(std::signbit(zero));
  for (const auto& function : {ceil, trunc, round}) {
    EXPECT_THAT(function(kNotFinite).ToFloats(), ElementsAre(IsNan(), kInfinity, -kInfinity));
    LossAndGradient step(x, [&](const Tensor& x, const Tensor& zeros) { return function(x) + zeros; });
    EXPECT_THAT(step(Tensor::Zeros({14})).second.ToFloats(), Each(0));
    EXPECT_NE(ErrorOf(function(Tensor())), "");
  }
  const std::vector<float> points = Sweep(0x1p-20f, 0x1p26f);
  const std::vector<float> nearest = round(Tensor::From(points, {static_cast<std::int64_t>(points.size())})).ToFloats();
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(nearest[i], std::nearbyint(points[i])) << points[i];
}

TEST(Rounding, OfEveryNumberOfF16IsTheEvenOne) {
  std::vector<float> points;
  for (int i = -4096; i <= 4096; ++i) points.push_back(static_cast<float>(i) / 8);
  const Tensor low = Tensor::From(points, {static_cast<std::int64_t>(points.size())}).To(DType::kF16);
  const std::vector<float> nearest = round(low).To(DType::kF32).ToFloats();
  const std::vector<float> given = low.To(DType::kF32).ToFloats();
  for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(nearest[i], std::nearbyint(given[i])) << given[i];
}

TEST(Lerp, IsPyTorchs) {
  const Tensor a = Tensor::From({1.0f, 2.0f, 3.0f}, {3}), b = Tensor::From({5.0f, -2.0f, 3.0f}, {3});
  EXPECT_THAT(lerp(a, b, 0.25).ToFloats(), ElementsAre(2, 1, 3));
  EXPECT_THAT(lerp(a, b, 1).ToFloats(), ElementsAre(5, -2, 3));
  EXPECT_THAT(lerp(a, b, Tensor::From({0.0f, 0.75f, 1.0f}, {3})).ToFloats(), ElementsAre(1, -1, 3));
  // Both ends are exact, where a + (b - a) is 0.
  const Tensor large = Tensor::From({1e8f}, {1}), small = Tensor::From({1.0f}, {1});
  EXPECT_EQ(lerp(large, small, 1).ToFloats()[0], 1);
  EXPECT_EQ(lerp(large, small, Tensor::From({1.0f}, {1})).ToFloats()[0], 1);
  // f16 does not hold the difference.
  const Tensor above = Tensor::From({60000.0f}, {1}).To(DType::kF16), below = neg(above);
  EXPECT_EQ(lerp(above, below, 0.25).dtype(), DType::kF16);
  EXPECT_EQ(lerp(above, below, 0.25).To(DType::kF32).ToFloats()[0], 30000);
  EXPECT_EQ(lerp(above, below, Tensor::From({0.75f}, {1})).To(DType::kF32).ToFloats()[0], -30000);
  const Tensor integers = Tensor::From<std::int32_t>({1, 2, 3}, {3});
  EXPECT_EQ(ErrorOf(lerp(integers, integers, 0.5)), ErrorOf(lerp(integers, integers, a)));
  EXPECT_NE(ErrorOf(lerp(integers, integers, 0.5)), "");
  const Tensor x = Eighths(2), y = Eighths(7), weight = Eighths(4) + 0.03;
  ExpectGradient([&](const Tensor& x) { return lerp(x, y, 0.75); }, x);
  ExpectGradient([&](const Tensor& y) { return lerp(x, y, weight); }, y);
  ExpectGradient([&](const Tensor& weight) { return lerp(x, y, weight); }, weight);
}

}  // namespace
}  // namespace mpc
