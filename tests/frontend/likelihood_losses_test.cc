// Losses of counts and of means with a variance. Expected numbers are those of PyTorch 2.15 in f64.
#include "frontend/nn/likelihood_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

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

// Fewer than 16 roundings of numbers below 64, which are those of Stirling's term of 20.
constexpr float kCountTolerance = 0x1p-14f;
// Fewer than 16 roundings of numbers below 4.
constexpr float kVarianceTolerance = 0x1p-18f;

Tensor Counts() {
  return Tensor::From({0.0f, 1.0f, 2.0f, 5.0f, 0.0f, 3.0f, 1.0f, 8.0f, 4.0f, 0.5f, 1.5f, 20.0f}, {4, 3});
}

TEST(PoissonNLLLoss, IsPyTorchs) {
  const struct {
    bool log_input, full;
    std::vector<float> expected;
  } cases[] = {{true,
                false,
                {0.60653066f, 1.00814845f, 0.617000017f, 2.02880078f, 1.45499141f, 2.41026143f, 1.0f, -3.13175404f,
                 2.18728928f, 1.15902542f, 1.59736655f, 3.3824969f}},
               {true,
                true,
                {0.60653066f, 1.00814845f, 1.2688065f, 6.79964783f, 1.45499141f, 4.17434297f, 1.0f, 7.46243759f,
                 5.34455244f, 1.15902542f, 1.8272353f, 45.713947f}},
               {false,
                false,
                {0.5f, 1.00721696f, 0.630768413f, 2.1884103f, 1.375f, 3.31748768f, 0.99999999f, -2.25906258f,
                 2.50501445f, 1.13842822f, 2.32944148f, 3.54562762f}},
               {false,
                true,
                {0.5f, 1.00721696f, 1.2825749f, 6.95925735f, 1.375f, 5.08156922f, 0.99999999f, 8.33512906f, 5.66227761f,
                 1.13842822f, 2.55931023f, 45.8770778f}}};
  for (const auto& [log_input, full, expected] : cases) {
    nn::PoissonNLLLoss loss({.log_input = log_input, .full = full, .reduction = "none"});
    const Tensor x = log_input ? Eighths(2) : Eighths(2) + 1.0;
    EXPECT_THAT(loss(x, Counts()).ToFloats(), Pointwise(FloatNear(kCountTolerance), expected)) << log_input << full;
    EXPECT_EQ(loss(x.To(DType::kF16), Counts()).ToFloats(), loss(x, Counts()).ToFloats());
    nn::PoissonNLLLoss mean({.log_input = log_input, .full = full});
    // A logarithm at 1/4 has a third derivative of 20 * 128 / 12.
    ExpectGradient([&](const Tensor& x) { return mean(x, Counts()); }, x, 1e-2f);
  }
  EXPECT_NEAR(nn::PoissonNLLLoss()(Eighths(2), Counts()).Item<float>(), 1.19334641f, kVarianceTolerance);
}

TEST(PoissonNLLLoss, OfNanInfinityAndZero) {
  nn::PoissonNLLLoss log_input({.reduction = "none"}), input({.log_input = false, .reduction = "none"});
  EXPECT_THAT(log_input(Tensor::From({kNan, kInfinity, -kInfinity, -kInfinity}, {4}),
                        Tensor::From({1.0f, 1.0f, 1.0f, 0.0f}, {4}))
                  .ToFloats(),
              ElementsAre(IsNan(), IsNan(), kInfinity, IsNan()));
  EXPECT_THAT(
      input(Tensor::From({0.0f, 0.0f, -1.0f, 1.0f}, {4}), Tensor::From({0.0f, 2.0f, 1.0f, kNan}, {4})).ToFloats(),
      ElementsAre(0, FloatNear(36.8413615f, kCountTolerance), IsNan(), IsNan()));
}

TEST(PoissonNLLLoss, RefusesByName) {
  EXPECT_THAT(ErrorOf(nn::PoissonNLLLoss({.eps = -1})(Eighths(2), Counts())),
              HasSubstr("PoissonNLLLoss eps must be a finite number >= 0, got -1"));
  EXPECT_THAT(ErrorOf(nn::PoissonNLLLoss()(Eighths(2), Values({3}))),
              HasSubstr("PoissonNLLLoss expects two floating tensors of one shape"));
  EXPECT_THAT(ErrorOf(nn::PoissonNLLLoss({.reduction = "all"})(Eighths(2), Counts())),
              HasSubstr("does not know the reduction 'all'"));
}

TEST(GaussianNLLLoss, IsPyTorchs) {
  const Tensor variance = Eighths(5) + 0.875;
  nn::GaussianNLLLoss loss({.reduction = "none"}), full({.full = true, .reduction = "none"});
  EXPECT_THAT(loss(Eighths(2), Eighths(7), variance).ToFloats(),
              Pointwise(FloatNear(kVarianceTolerance),
                        {0.11657563f, 0.30127232f, 0.842918707f, 0.1953125f, 0.550446216f, 0.0774981854f, 0.267821776f,
                         1.30685282f, 0.156448589f, 0.536065887f, 0.0440514097f, 0.232502629f}));
  EXPECT_THAT(full(Eighths(2), Eighths(7), variance).ToFloats(),
              Pointwise(FloatNear(kVarianceTolerance),
                        {1.03551416f, 1.22021085f, 1.76185724f, 1.11425103f, 1.46938475f, 0.996436719f, 1.18676031f,
                         2.22579135f, 1.07538712f, 1.45500442f, 0.962989943f, 1.15144116f}));
  EXPECT_NEAR(nn::GaussianNLLLoss()(Eighths(2).To(DType::kF16), Eighths(7), variance).Item<float>(), 0.385647222f,
              kVarianceTolerance);
  const Tensor rows = Tensor::From({0.25f, 0.5f, 1.0f, 2.0f}, {4});
  const std::vector<float> of_rows = {0.0881028194f, 0.0881028194f, 1.30685282f, 0.0440514097f,
                                      0.65342641f,   0.0440514097f, 0.1953125f,  0.5f,
                                      0.1953125f,    0.59657359f,   0.44422984f, 0.44422984f};
  EXPECT_THAT(loss(Eighths(2), Eighths(7), rows).ToFloats(), Pointwise(FloatNear(kVarianceTolerance), of_rows));
  EXPECT_THAT(loss(Eighths(2), Eighths(7), reshape(rows, {4, 1})).ToFloats(),
              Pointwise(FloatNear(kVarianceTolerance), of_rows));
  ExpectGradient([&](const Tensor& x) { return loss(x, Eighths(7), variance); }, Eighths(2));
  ExpectGradient([&](const Tensor& t) { return loss(Eighths(2), t, rows); }, Eighths(7));
  // The third derivative at a variance of 1/4 is 704, of an error of 1: 704 * 2^-12 / 6 is 0.0287, and the fifth adds
  // 1e-4.
  ExpectGradient([&](const Tensor& v) { return loss(Eighths(2), Eighths(7), v); }, variance, 0.03f);
  const Tensor columns = Tensor::From({0.5f, 1.0f, 2.0f}, {1, 3});
  EXPECT_EQ(loss(Eighths(2), Eighths(7), columns).ToFloats(),
            loss(Eighths(2), Eighths(7), broadcast_to(columns, {4, 3})).ToFloats());
  EXPECT_THAT(ErrorOf(loss(Eighths(2), Eighths(7), Values({1, 1}))),
              HasSubstr("got tensor<1x1xf32> for tensor<4x3xf32>"));
}

TEST(GaussianNLLLoss, AVarianceBelowEpsHasTheDerivativeAtEps) {
  nn::GaussianNLLLoss loss({.eps = 0.125, .reduction = "none"});
  const Tensor x = Tensor::From({0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f}, {6});
  const Tensor target = Tensor::From({0.0f, 0.5f, 1.0f, 0.0f, 0.0f, 0.0f}, {6});
  LossAndGradient step(Tensor::From({0.0f, 1e-7f, 0.5f, -0.5f, kNan, kInfinity}, {6}),
                       [&](const Tensor& variance, const Tensor& target) { return loss(x, target, variance); });
  const auto [value, gradient] = step(target);
  EXPECT_THAT(value.ToFloats(),
              ElementsAre(FloatNear(-0.789720771f, kVarianceTolerance), FloatNear(-0.789720771f, kVarianceTolerance),
                          FloatNear(0.21592641f, kVarianceTolerance), IsNan(), IsNan(), kInfinity));
  const std::vector<float> slopes = gradient.ToFloats();
  EXPECT_THAT(std::vector<float>(slopes.begin(), slopes.begin() + 3),
              Pointwise(FloatNear(kVarianceTolerance), {2.0f, 2.0f, -0.125f}));
}

TEST(GaussianNLLLoss, RefusesByName) {
  nn::GaussianNLLLoss loss;
  EXPECT_THAT(ErrorOf(loss(Eighths(2), Eighths(7), Values({3}))),
              HasSubstr("GaussianNLLLoss expects a floating variance of the shape of x, with 1 in place of one "
                        "extent or without the last, got tensor<3xf32> for tensor<4x3xf32>"));
  EXPECT_THAT(ErrorOf(loss(Eighths(2), Values({3}), Eighths(2))), HasSubstr("expects two floating tensors"));
  EXPECT_THAT(ErrorOf(nn::GaussianNLLLoss({.eps = 0})(Eighths(2), Eighths(7), Eighths(2))),
              HasSubstr("eps must be a finite number > 0, got 0"));
}

}  // namespace
}  // namespace mpc
