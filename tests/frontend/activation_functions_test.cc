// Activations that are compositions. Expected numbers are those of PyTorch 2.15 in f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "frontend/graph/activation_ops.h"
#include "frontend/nn/composed_activations.h"
#include "tests/frontend/eighths.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/loss_and_gradient.h"
#include "tests/frontend/numeric_gradient.h"

namespace mpc {
namespace {

using testing::Eighths;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsNan;
using testing::kInfinity;
using testing::kNan;
using testing::LossAndGradient;
using ::testing::Pointwise;

const Tensor kPlaces = Tensor::From({-200.0f, -3.0f, -0.5f, -1e-3f, 0.0f, 0.25f, 0.5f, 2.0f, 200.0f}, {9});

struct ActivationCase {
  const char* name;
  testing::TensorFunction function;
  std::vector<float> values;
  std::vector<float> slopes;
  /// Of NaN, infinity and minus infinity.
  std::vector<float> special;
};

std::vector<ActivationCase> ActivationCases() {
  return {
      {"selu",
       [](const Tensor& x) { return nn::SELU()(x); },
       {-1.75809934f, -1.67056873f, -0.691758188f, -0.00175722058f, 0, 0.262675247f, 0.525350494f, 2.10140197f,
        210.140197f},
       {0, 0.0875306121f, 1.06634115f, 1.75634212f, 1.75809934f, 1.05070099f, 1.05070099f, 1.05070099f, 1.05070099f},
       {kNan, kInfinity, -1.75809934f}},
      {"celu",
       [](const Tensor& x) { return nn::CELU(0.5)(x); },
       {-0.5f, -0.498760624f, -0.316060279f, -0.000999000666f, 0, 0.25f, 0.5f, 2, 200},
       {0, 0.00247875218f, 0.367879441f, 0.998001999f, 1, 1, 1, 1, 1},
       {kNan, kInfinity, -0.5f}},
      {"hardtanh",
       [](const Tensor& x) { return nn::Hardtanh(-0.75, 1.5)(x); },
       {-0.75f, -0.75f, -0.5f, -0.001f, 0, 0.25f, 0.5f, 1.5f, 1.5f},
       {0, 0, 1, 1, 1, 1, 1, 0, 0},
       {kNan, 1.5f, -0.75f}},
      {"logsigmoid",
       [](const Tensor& x) { return nn::LogSigmoid()(x); },
       {-200, -3.04858735f, -0.974076984f, -0.693647306f, -0.693147181f, -0.57593942f, -0.474076984f, -0.126928011f, 0},
       {1, 0.952574127f, 0.622459331f, 0.50025f, 0.5f, 0.437823499f, 0.377540669f, 0.119202922f, 0},
       {kNan, 0, -kInfinity}},
      {"softsign",
       [](const Tensor& x) { return nn::Softsign()(x); },
       {-0.995024876f, -0.75f, -0.333333333f, -0.000999000999f, 0, 0.2f, 0.333333333f, 0.666666667f, 0.995024876f},
       {2.47518626e-05f, 0.0625f, 0.444444444f, 0.998002996f, 1, 0.64f, 0.444444444f, 0.111111111f, 2.47518626e-05f},
       {kNan, kNan, kNan}},
      {"hardshrink",
       [](const Tensor& x) { return nn::HShrink()(x); },
       {-200, -3, 0, 0, 0, 0, 0, 2, 200},
       {1, 1, 0, 0, 0, 0, 0, 1, 1},
       {kNan, kInfinity, -kInfinity}},
      {"softshrink",
       [](const Tensor& x) { return nn::SoftShrink()(x); },
       {-199.5f, -2.5f, 0, 0, 0, 0, 0, 1.5f, 199.5f},
       {1, 1, 0, 0, 0, 0, 0, 1, 1},
       {kNan, kInfinity, -kInfinity}}};
}

// Fewer than 16 roundings of each number, and of terms of the derivative that are at most 1.8.
void ExpectNumbers(const std::vector<float>& actual, const std::vector<float>& expected, float least,
                   const char* name) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 16 * 0x1p-24f * std::max(std::abs(expected[i]), least)) << name << " " << i;
  }
}

TEST(ActivationFunctions, ArePyTorchs) {
  const Tensor special = Tensor::From({kNan, kInfinity, -kInfinity}, {3});
  for (const ActivationCase& each : ActivationCases()) {
    LossAndGradient step(kPlaces, [&](const Tensor& x, const Tensor& zeros) { return each.function(x) + zeros; });
    const auto [value, gradient] = step(Tensor::Zeros({9}));
    ExpectNumbers(value.ToFloats(), each.values, 0x1p-40f, each.name);
    ExpectNumbers(gradient.ToFloats(), each.slopes, 2, each.name);
    EXPECT_THAT(each.function(special).ToFloats(), Pointwise(::testing::NanSensitiveFloatNear(1e-6f), each.special))
        << each.name;
    ExpectGradient(each.function, Eighths(2) * 1.75 + 0.03);
    const Tensor low = each.function(kPlaces.To(DType::kF16));
    EXPECT_EQ(low.dtype(), DType::kF16) << each.name;
    const std::vector<float> rounded = low.To(DType::kF32).ToFloats();
    for (std::size_t i = 0; i < rounded.size(); ++i) {
      EXPECT_NEAR(rounded[i], each.values[i], 4 * 0x1p-11f * std::abs(each.values[i]) + 0x1p-24f) << each.name << i;
    }
  }
}

TEST(ActivationFunctions, CeluTakesAnAlphaThatF16DoesNotHold) {
  const Tensor low = Tensor::From({-1.0f, 0.0f, 2.0f}, {3}).To(DType::kF16);
  EXPECT_THAT(celu(low, 1e-8).To(DType::kF32).ToFloats(), Pointwise(FloatNear(1e-8f), {0.0f, 0.0f, 2.0f}));
  EXPECT_THAT(celu(low, 1e5).To(DType::kF32).ToFloats(), Pointwise(FloatNear(0x1p-11f), {-1.0f, 0.0f, 2.0f}));
}

TEST(ActivationFunctions, GluIsPyTorchs) {
  EXPECT_THAT(
      nn::GLU(0)(Eighths(2)).ToFloats(),
      Pointwise(FloatNear(1e-6f), {-0.25f, 0.0814193581f, 0.30550005f, -0.140544125f, 0.120307988f, -0.292994142f}));
  const Tensor columns = glu(Eighths(2, {3, 4}));
  EXPECT_EQ(columns.shape(), Shape({3, 2}));
  EXPECT_THAT(columns.ToFloats(), Pointwise(FloatNear(1e-6f), {-0.33958935f, 0.0547279374f, 0.1875f, -0.40709679f,
                                                               -0.120307988f, 0.117197657f}));
  ExpectGradient([](const Tensor& x) { return glu(x, 0); }, Eighths(2));
  EXPECT_THAT(ErrorOf(glu(Eighths(2))),
              HasSubstr("glu takes an axis of an even extent, got axis -1 of tensor<4x3xf32>"));
  EXPECT_THAT(ErrorOf(glu(Eighths(2), 2)), HasSubstr("got axis 2 of"));
}

TEST(ActivationFunctions, RefuseByName) {
  const Tensor x = Eighths(2);
  EXPECT_THAT(ErrorOf(celu(x, 0)), HasSubstr("celu takes an alpha that is finite and > 0 in f32, got 0"));
  EXPECT_THAT(ErrorOf(celu(x, 1e-60)), HasSubstr("got 1e-60"));
  EXPECT_THAT(ErrorOf(hardtanh(x, 1, 1)), HasSubstr("hardtanh takes a minimum below its maximum, got 1 and 1"));
  EXPECT_THAT(ErrorOf(hardshrink(x, kNan)), HasSubstr("hardshrink takes a lambd that is finite in f32, got nan"));
  EXPECT_THAT(ErrorOf(softshrink(x, -1)), HasSubstr("softshrink takes a lambd that is finite in f32 and >= 0, got -1"));
  for (const ActivationCase& each : ActivationCases()) {
    EXPECT_NE(ErrorOf(each.function(Tensor::From<std::int32_t>({1, 2}, {2}))), "") << each.name;
    EXPECT_NE(ErrorOf(each.function(Tensor())), "") << each.name;
  }
}

TEST(ActivationFunctions, IdentityIsX) {
  EXPECT_EQ(nn::Identity()(Eighths(2)).ToFloats(), Eighths(2).ToFloats());
  nn::SequentialCell net{nn::Dense(3, 3), nn::Identity()};
  EXPECT_EQ(net.TrainableParams().size(), 2u);
  EXPECT_EQ(net(Eighths(2)).shape(), Shape({4, 3}));
}

}  // namespace
}  // namespace mpc
