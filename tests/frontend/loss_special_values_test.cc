// Losses of numbers that are not finite, or at the ends of f32.
#include <gmock/gmock.h>

#include "frontend/nn/loss.h"
#include "tests/frontend/loss_and_gradient.h"
#include "tests/training/probe.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using ::testing::IsNan;
using testing::kInfinity;
using testing::LossAndGradient;
using testing::LossFunction;

// The values are PyTorch's.
TEST(HuberLoss, DifferencesThatAreNotFiniteAreSeen) {
  const Tensor x = Tensor::From<float>({testing::kNan, kInfinity, -kInfinity, 3e38f, -3e38f, 0, 0.5f, -2}, {8});
  const auto run = [&](const LossFunction& loss) {
    LossAndGradient step(x, loss);
    const auto [value, gradient] = step(Tensor::Zeros({8}));
    EXPECT_TRUE(value.status().ok()) << value.status();
    return std::pair(value.ToFloats(), gradient.ToFloats());
  };
  nn::HuberLoss huber({.reduction = "none", .delta = 0.5});
  const auto [values, slopes] = run([&](const Tensor& a, const Tensor& b) { return huber(a, b); });
  EXPECT_THAT(values, ElementsAre(IsNan(), kInfinity, kInfinity, 1.5e38f, 1.5e38f, 0, 0.125f, 0.875f));
  EXPECT_THAT(slopes, ElementsAre(IsNan(), 0.5f, -0.5f, 0.5f, -0.5f, 0, 0.5f, -0.5f));
  nn::SmoothL1Loss smooth({.beta = 0.5});
  const auto [losses, gradient] = run([&](const Tensor& a, const Tensor& b) { return smooth(a, b); });
  EXPECT_THAT(losses, ElementsAre(IsNan(), kInfinity, kInfinity, 3e38f, 3e38f, 0, 0.25f, 1.75f));
  EXPECT_THAT(gradient, ElementsAre(IsNan(), 1, -1, 1, -1, 0, 1, -1));
}

TEST(BCEWithLogitsLoss, AnInfiniteLogitIsRightOrInfinitelyWrong) {
  const Tensor x = Tensor::From<float>({kInfinity, kInfinity, -kInfinity, -kInfinity, testing::kNan}, {5});
  nn::BCEWithLogitsLoss loss({.reduction = "none"});
  LossAndGradient step(x, [&](const Tensor& a, const Tensor& b) { return loss(a, b); });
  const auto [value, gradient] = step(Tensor::From<float>({1, 0, 0, 1, 0}, {5}));
  EXPECT_THAT(value.ToFloats(), ElementsAre(0, kInfinity, 0, kInfinity, IsNan()));
  EXPECT_THAT(gradient.ToFloats(), ElementsAre(0, 1, 0, -1, IsNan()));
}

TEST(SmoothL1Loss, ABetaWithoutAReciprocalIsTheDistance) {
  const Tensor x = Tensor::From<float>({3, -1e30f}, {2});
  EXPECT_THAT(nn::SmoothL1Loss({.beta = 1e-39})(x, Tensor::Zeros({2})).ToFloats(), ElementsAre(3, 1e30f));
}

TEST(KLDivLoss, ATargetThatIsNanIsSeen) {
  const Tensor x = Tensor::From<float>({-1, -1, -1}, {3});
  nn::KLDivLoss loss({.reduction = "none"});
  LossAndGradient step(x, [&](const Tensor& a, const Tensor& b) { return loss(a, b); });
  const auto [value, gradient] = step(Tensor::From<float>({testing::kNan, 0, 1}, {3}));
  EXPECT_THAT(value.ToFloats(), ElementsAre(IsNan(), 0, 1));
  EXPECT_THAT(gradient.ToFloats(), ElementsAre(IsNan(), 0, -1));
}

}  // namespace
}  // namespace mpc
