// Functions and layers made of operations that exist.
#include "frontend/graph/composed_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "frontend/nn/composed_layers.h"
#include "tests/frontend/error_of.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::Values;

const Tensor kPoints = Tensor::From({-200.0f, -1.0f, 0.0f, 1.0f, 200.0f}, {5});

/// The derivative of `function` at w + x, by a compiled step.
class GradientOf : public nn::TrainingStep {
 public:
  MPC_CELL(GradientOf, w)
  explicit GradientOf(std::function<Tensor(const Tensor&)> function) : function_(std::move(function)) {}
  Tensor Construct(Tensor x) { return ops::Backward(reduce_sum(function_(w + x)), {w})[0]; }
  Parameter w{{5}, Ones()};

 private:
  std::function<Tensor(const Tensor&)> function_;
};

std::vector<float> Gradient(std::function<Tensor(const Tensor&)> function) {
  GradientOf step(std::move(function));
  return step(kPoints - 1.0).ToFloats();
}

TEST(ComposedOps, EluSoftplusAndMishDoNotOverflow) {
  const float e = std::exp(-1.0f);
  EXPECT_THAT(nn::ELU()(kPoints).ToFloats(), Pointwise(FloatNear(1e-6f), {-1.0f, e - 1, 0.0f, 1.0f, 200.0f}));
  const float low = std::log1p(e);
  const float two = std::log(2.0f);
  EXPECT_THAT(nn::Softplus()(kPoints).ToFloats(), Pointwise(FloatNear(1e-6f), {0.0f, low, two, 1 + low, 200.0f}));
  EXPECT_THAT(nn::Mish()(kPoints).ToFloats(),
              Pointwise(FloatNear(1e-6f), {0.0f, -std::tanh(low), 0.0f, std::tanh(1 + low), 200.0f}));
}

TEST(ComposedOps, DerivativesAreFiniteAndRightAtZero) {
  const float e = std::exp(-1.0f);
  EXPECT_THAT(Gradient([](const Tensor& x) { return elu(x, 2); }),
              Pointwise(FloatNear(1e-6f), {0.0f, 2 * e, 2.0f, 1.0f, 1.0f}));
  EXPECT_THAT(Gradient([](const Tensor& x) { return softplus(x); }),
              Pointwise(FloatNear(1e-6f), {0.0f, e / (1 + e), 0.5f, 1 / (1 + e), 1.0f}));
  EXPECT_NEAR(Gradient([](const Tensor& x) { return mish(x); })[2], 0.6f, 1e-6f) << "tanh(log(2))";
}

TEST(ComposedOps, RmsNormDividesByTheRootOfTheMeanSquare) {
  EXPECT_THAT(nn::RMSNorm(2)(Tensor::From({1.0f, 7.0f}, {1, 2})).ToFloats(), Pointwise(FloatNear(1e-5f), {0.2f, 1.4f}));
  EXPECT_THAT(ErrorOf(nn::RMSNorm(3)(Values({1, 2}))), HasSubstr("rms_norm takes gamma of the last extent of x"));
}

TEST(ComposedOps, StackAndArgsort) {
  const Tensor a = Tensor::From({3.0f, 1.0f}, {2});
  const Tensor b = Tensor::From({5.0f, 6.0f}, {2});
  EXPECT_THAT(stack({a, b}).ToFloats(), ElementsAre(3, 1, 5, 6));
  EXPECT_THAT(stack({a, b}, -1).ToFloats(), ElementsAre(3, 5, 1, 6));
  EXPECT_EQ(stack({a, b, a}, 1).shape(), Shape({2, 3}));
  EXPECT_THAT(ErrorOf(stack({})), HasSubstr("at least one tensor"));
  EXPECT_THAT(ErrorOf(stack({a, Values({3})})), HasSubstr("tensors of one shape"));
  EXPECT_THAT(ErrorOf(stack({a}, 2)), HasSubstr("stack axis 2 is outside [-2, 1]"));
  EXPECT_THAT(argsort(a).ToFloats(), ElementsAre(1, 0));
  EXPECT_THAT(argsort(a, -1, /*descending=*/true).ToFloats(), ElementsAre(0, 1));
}

}  // namespace
}  // namespace mpc
