// Weights of binary cross-entropy of logits. Expected numbers are those of PyTorch 2.15 in f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "frontend/nn/loss.h"
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
using testing::Values;

// Fewer than 16 roundings of numbers below 16.
constexpr float kLogitTolerance = 0x1p-16f;

/// Logits that are halves from -3 to 3.
Tensor HalfLogits() { return Eighths(2) * 4.0; }
/// 1 where the eighths are positive, else 0.
Tensor HardLabels() {
  return where(greater(Eighths(7), Tensor::Scalar(0.0f)), Tensor::Full({4, 3}, 1.0), Tensor::Zeros({4, 3}));
}
/// From 0 to 1.
Tensor SoftLabels() { return (Eighths(7) + 0.75) * (1 / 1.5); }

const Tensor kClassWeights = Tensor::From({0.5f, 2.0f, 3.0f}, {3});
const Tensor kRowWeights = Tensor::From({1.0f, 0.25f, 2.0f, 0.5f}, {4, 1});

TEST(BCEWithLogitsWeights, ArePyTorchs) {
  nn::BCEWithLogitsLoss of_labels({.reduction = "none", .pos_weight = kClassWeights});
  EXPECT_THAT(of_labels(HalfLogits(), HardLabels()).ToFloats(),
              Pointwise(FloatNear(kLogitTolerance),
                        {1.06346401f, 0.948153968f, 3.04858735f, 0.656630844f, 1.70141328f, 0.0788897343f, 0.34657359f,
                         2.57888973f, 5.10423983f, 1.31326169f, 0.0485873516f, 2.92223095f}));
  nn::BCEWithLogitsLoss of_rows({.reduction = "none", .weight = kRowWeights});
  EXPECT_THAT(of_rows(HalfLogits(), HardLabels()).ToFloats(),
              Pointwise(FloatNear(kLogitTolerance),
                        {2.12692801f, 0.474076984f, 3.04858735f, 0.328315422f, 0.425353319f, 0.0197224336f, 1.38629436f,
                         5.15777947f, 3.40282656f, 0.656630844f, 0.0242936758f, 0.487038492f}));
  nn::BCEWithLogitsLoss of_both({.reduction = "none", .weight = kRowWeights, .pos_weight = kClassWeights});
  EXPECT_THAT(of_both(HalfLogits(), SoftLabels()).ToFloats(),
              Pointwise(FloatNear(kLogitTolerance),
                        {0.673240674f, 0.948153968f, 2.08097892f, 0.142697139f, 0.398299429f, 0.976944867f,
                         0.750909446f, 3.94722434f, 6.93992863f, 0.656630844f, 1.28441604f, 1.25710265f}));
  nn::BCEWithLogitsLoss mean({.weight = kRowWeights, .pos_weight = kClassWeights});
  EXPECT_NEAR(mean(HalfLogits(), SoftLabels()).Item<float>(), 1.67137724f, kLogitTolerance);
  // Weights of 1 change nothing, and inputs of f16 give a loss of f32.
  const Tensor ones = Tensor::Full({1}, 1.0);
  nn::BCEWithLogitsLoss plain({.reduction = "none"}),
      of_ones({.reduction = "none", .weight = ones, .pos_weight = ones});
  EXPECT_EQ(of_ones(HalfLogits(), HardLabels()).ToFloats(), plain(HalfLogits(), HardLabels()).ToFloats());
  const Tensor low = of_both(HalfLogits().To(DType::kF16), HardLabels().To(DType::kF16));
  EXPECT_EQ(low.dtype(), DType::kF32);
  EXPECT_EQ(low.ToFloats(), of_both(HalfLogits(), HardLabels()).ToFloats());
}

TEST(BCEWithLogitsWeights, WeighTheGradient) {
  nn::BCEWithLogitsLoss loss({.reduction = "sum", .weight = kRowWeights, .pos_weight = kClassWeights});
  LossAndGradient step(HalfLogits(), [&](const Tensor& x, const Tensor& labels) { return loss(x, labels); });
  const auto [value, gradient] = step(SoftLabels());
  EXPECT_THAT(gradient.ToFloats(),
              Pointwise(FloatNear(kLogitTolerance),
                        {-0.207231264f, -0.755081338f, 0.587623545f, -0.0517279029f, 0.179759754f, -0.33707091f,
                         -0.375f, 1.31035455f, -3.14868089f, 0.365529289f, -0.38307334f, -0.746612442f}));
  ExpectGradient([&](const Tensor& x) { return loss(x, HardLabels()); }, HalfLogits());
}

// PyTorch gives NaN for an infinite logit, right or wrong.
TEST(BCEWithLogitsWeights, OfLargeAndInfiniteLogits) {
  const Tensor x = Tensor::From({100.0f, -100.0f, 1000.0f, -1000.0f, kInfinity, -kInfinity, kNan}, {7});
  nn::BCEWithLogitsLoss loss({.reduction = "none", .pos_weight = Tensor::Full({1}, 0.5)});
  LossAndGradient step(x, [&](const Tensor& x, const Tensor& labels) { return loss(x, labels); });
  const auto [zeros, of_zeros] = step(Tensor::Zeros({7}));
  EXPECT_THAT(zeros.ToFloats(), ElementsAre(100, FloatNear(0, 1e-30f), 1000, 0, kInfinity, 0, IsNan()));
  EXPECT_THAT(of_zeros.ToFloats(), ElementsAre(1, FloatNear(0, 1e-30f), 1, 0, 1, 0, IsNan()));
  const auto [ones, of_ones] = step(Tensor::Full({7}, 1.0));
  EXPECT_THAT(ones.ToFloats(), ElementsAre(FloatNear(0, 1e-30f), 50, 0, 500, 0, kInfinity, IsNan()));
  EXPECT_THAT(of_ones.ToFloats(), ElementsAre(FloatNear(0, 1e-30f), -0.5, 0, -0.5, 0, -0.5, IsNan()));
}

TEST(BCEWithLogitsWeights, AreRefusedByName) {
  const auto error = [](const nn::BCEWithLogitsLossOptions& options, const Tensor& labels) {
    return ErrorOf(nn::BCEWithLogitsLoss(options)(HalfLogits(), labels));
  };
  EXPECT_THAT(error({.weight = Values({4})}, HardLabels()),
              HasSubstr("BCEWithLogitsLoss takes a weight that broadcasts to tensor<4x3xf32>, got tensor<4xf32>"));
  EXPECT_THAT(error({.pos_weight = Values({2, 4, 3})}, HardLabels()),
              HasSubstr("takes a pos_weight that broadcasts to tensor<4x3xf32>, got tensor<2x4x3xf32>"));
  EXPECT_THAT(error({.pos_weight = Tensor::From<std::int32_t>({1}, {1})}, HardLabels()),
              HasSubstr("takes a concrete floating pos_weight"));
  EXPECT_THAT(error({.pos_weight = kClassWeights}, Values({3})),
              HasSubstr("expects two floating tensors of one shape"));
  EXPECT_THAT(error({.reduction = "max", .weight = kRowWeights}, HardLabels()),
              HasSubstr("BCEWithLogitsLoss does not know the reduction 'max'"));
}

}  // namespace
}  // namespace mpc
