// ops::Grad: derivatives by inputs and by values in between, also where a loss is made of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "frontend/graph/gradient_ops.h"
#include "tests/frontend/critic_penalty.h"
#include "tests/frontend/error_of.h"
#include "tests/training/probe.h"

namespace mpc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::Probe;

/// A Cell of a function, with a network of weight 3.
class CellOf : public nn::Cell {
 public:
  MPC_CELL(CellOf, network)
  explicit CellOf(std::function<Tensor(Probe&, Tensor)> body) : body_(std::move(body)) {}
  Tensor Construct(Tensor x) { return body_(network, x); }
  Probe network{2, 3.0};

 private:
  std::function<Tensor(Probe&, Tensor)> body_;
};

Tensor ResultOf(std::function<Tensor(Probe&, Tensor)> body, Tensor x = Tensor::From({2.0f, -1.0f}, {2})) {
  CellOf cell(std::move(body));
  return cell(x);
}

TEST(Grad, ByAnInput) {
  // d/dx sum((w x)^2) = 2 w^2 x.
  EXPECT_THAT(ResultOf([](Probe& network, const Tensor& x) {
                return ops::Grad(reduce_sum(square(network(x))), {x})[0];
              }).ToFloats(),
              ElementsAre(36, -18));
}

TEST(Grad, ByAValueInBetween) {
  EXPECT_THAT(ResultOf([](Probe& network, const Tensor& x) {
                const Tensor y = network(x);
                const std::vector<Tensor> gradients = ops::Grad(reduce_sum(y * y), {y, x}, Tensor::Scalar(0.5f));
                return gradients[0] + gradients[1];
              }).ToFloats(),
              ElementsAre(6 + 18, -3 - 9));
}

TEST(Grad, IsZeroWhereNothingDepends) {
  EXPECT_THAT(ResultOf([](Probe& network, const Tensor& x) {
                const Tensor y = network(x);
                return ops::Grad(reduce_sum(x * x), {y})[0];
              }).ToFloats(),
              Each(0));
}

TEST(Grad, OfGradients) {
  // Third derivatives by x of functions of y = w x at w = 3.
  const auto third = [](const std::function<Tensor(const Tensor&)>& function) {
    return ResultOf(
               [&](Probe& network, const Tensor& x) {
                 Tensor y = function(network(x));
                 for (int order = 0; order < 3; ++order) y = ops::Grad(reduce_sum(y), {x})[0];
                 return y;
               },
               Tensor::From({0.25f, -0.5f}, {2}))
        .ToFloats();
  };
  // Numbers up to 81 that round a few times.
  constexpr float kTolerance = 1e-3f;
  EXPECT_THAT(third([](const Tensor& y) { return sin(y); }),
              Pointwise(FloatNear(kTolerance), {-27 * std::cos(0.75f), -27 * std::cos(1.5f)}));
  EXPECT_THAT(third([](const Tensor& y) { return pow(y, 4); }),
              Pointwise(FloatNear(kTolerance), {81 * 24 * 0.25f, 81 * 24 * -0.5f}));
  const auto tanh3 = [](float x) {
    const float t = std::tanh(3 * x);
    return 27 * (1 - t * t) * (6 * t * t - 2);
  };
  EXPECT_THAT(third([](const Tensor& y) { return tanh(y); }),
              Pointwise(FloatNear(kTolerance), {tanh3(0.25f), tanh3(-0.5f)}));
  // Slopes are 1 and 0.5.
  EXPECT_THAT(third([](const Tensor& y) { return pow(prelu(y, Tensor::From({0.5f}, {1})), 3); }),
              Pointwise(FloatNear(kTolerance), {27 * 6.0f, 27 * 0.125f * 6}));
  EXPECT_THAT(third([](const Tensor& y) { return pow(reduce_max(y), 3); }),
              Pointwise(FloatNear(kTolerance), {27 * 6.0f, 0.0f}));
  EXPECT_THAT(third([](const Tensor& y) { return pow(reduce_min(y), 3); }),
              Pointwise(FloatNear(kTolerance), {0.0f, 27 * 6.0f}));
  // 81 a^2 b^2: its gradient adds up to 162 (a b^2 + a^2 b), that of the sum to 162 (a^2 + 4 a b + b^2).
  EXPECT_THAT(third([](const Tensor& y) { return reduce_prod(square(y)); }),
              Pointwise(FloatNear(kTolerance), {162 * (2 * 0.25f - 4 * 0.5f), 162 * (4 * 0.25f - 2 * 0.5f)}));
  // With the normal density f: f (x^3 - 4 x).
  const auto gelu3 = [](float x) {
    const float z = 3 * x;
    return 27 * std::exp(-z * z / 2) * 0.39894228f * (z * z * z - 4 * z);
  };
  EXPECT_THAT(third([](const Tensor& y) { return gelu(y); }),
              Pointwise(FloatNear(kTolerance), {gelu3(0.25f), gelu3(-0.5f)}));
}

TEST(Grad, RefusesWhatHasNoGradient) {
  const auto by = [](const std::function<Tensor(const Tensor&)>& of) {
    return ErrorOf(
        ResultOf([&](Probe& network, const Tensor& x) { return ops::Grad(reduce_sum(network(x)), {of(x)})[0]; }));
  };
  EXPECT_THAT(by([](const Tensor&) { return Tensor(); }), HasSubstr("Grad was given an undefined tensor"));
  EXPECT_THAT(by([](const Tensor&) { return Tensor::Scalar(1.0f); }),
              HasSubstr("Grad takes tensors that the loss was computed from, got a constant, tensor<f32>"));
  EXPECT_THAT(by([](const Tensor& x) { return argmax(x); }), HasSubstr("Grad takes floating tensors, got tensor<i32>"));
  EXPECT_THAT(ErrorOf(ResultOf([](Probe&, const Tensor& x) { return ops::Grad(argmax(x), {x})[0]; })),
              HasSubstr("Grad differentiates a floating loss, got tensor<i32>"));
  EXPECT_THAT(ErrorOf(ops::Grad(Tensor::Scalar(1.0f), {Tensor::Scalar(1.0f)})[0]),
              HasSubstr("Grad belongs into a Cell's Construct; no trace is running"));
}

/// A penalty on the derivative of w x^2 by x. It is 4 w^2 x^2, and its derivative by w is 8 w x^2.
class PenaltyStep : public nn::TrainingStep {
 public:
  MPC_CELL(PenaltyStep, network)
  Tensor Construct(Tensor x) {
    const Tensor derivative = ops::Grad(reduce_sum(network(x * x)), {x})[0];
    const Tensor loss = reduce_sum(derivative * derivative);
    return ops::Depend(loss, optimizer(ops::Backward(loss, optimizer.parameters())));
  }
  std::vector<nn::Optimizer*> optimizers() const override { return {const_cast<nn::SGD*>(&optimizer)}; }
  Probe network{1, 1.0};
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0 / 64}};
};

TEST(Grad, IsOfTheMicroBatchAndWithoutTheLossScale) {
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    for (const std::int64_t micro_steps : {1, 2}) {
      PenaltyStep step;
      Model model(step, {.amp_level = level,
                         .loss_scale_manager = FixedLossScaleManager({.loss_scale = 64}),
                         .accumulation_steps = micro_steps});
      const data::Dataset batches =
          data::GeneratorDataset({{Tensor::Full({1}, 1.0f)}, {Tensor::Full({1}, 2.0f)}}, {"x"});
      MPC_ASSERT_OK(model.Train(1, batches));
      const float first = 1 - 8.0f / 64;
      const float expected = micro_steps == 1 ? first - 8 * first * 4 / 64 : 1 - (8.0f + 32.0f) / 2 / 64;
      EXPECT_EQ(step.network.weight.Value()->Item<float>(), expected) << level << " " << micro_steps;
    }
  }
}

/// The same penalty by the Parameter: (d/dw w^2 x)^2 = 4 w^2 x^2.
class ParameterPenaltyStep : public PenaltyStep {
 public:
  MPC_CELL(ParameterPenaltyStep)
  Tensor Construct(Tensor x) {
    const Tensor loss = reduce_sum(network(network(x)));
    const Tensor derivative = ops::Backward(loss, {network.weight})[0];
    const Tensor penalty = reduce_sum(derivative * derivative);
    return ops::Depend(penalty, optimizer(ops::Backward(penalty, optimizer.parameters())));
  }
};

TEST(Backward, APenaltyOnGradientsReadsThemUnscaled) {
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    ParameterPenaltyStep step;
    Model model(step, {.amp_level = level, .loss_scale_manager = FixedLossScaleManager({.loss_scale = 64})});
    MPC_ASSERT_OK(model.Train(1, data::GeneratorDataset({{Tensor::Full({1}, 2.0f)}}, {"x"})));
    EXPECT_EQ(step.network.weight.Value()->Item<float>(), 1 - 8.0f * 4 / 64) << level;
  }
}

TEST(Backward, APenaltyOnGradientsOfSeveralMicroBatchesNamesGrad) {
  ParameterPenaltyStep step;
  Model model(step, {.amp_level = "O0", .accumulation_steps = 2});
  const absl::Status status = model.Train(1, data::GeneratorDataset({{Tensor::Full({1}, 2.0f)}}, {"x"}));
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("gradients by parameters add up over the micro-batches of an update; ops::Grad by "
                                   "the parameters' tensors gives that of a micro-batch"));
}

class Critic : public nn::Cell {
 public:
  MPC_CELL(Critic, first, second, head)
  Tensor Construct(Tensor x) { return head(flatten(leaky_relu(second(leaky_relu(first(x), 0.25)), 0.25))); }
  nn::Conv2d first{2, 4, 3};
  nn::Conv2d second{4, 4, 3, {.stride = 2}};
  nn::Dense head{4 * 3 * 3, 1};
};

TEST(Grad, PenaltiesTrainConvolutionsAtEveryLevel) { testing::ExpectPenaltyTrains<Critic>(); }

/// u(x) and its second derivative, as a solver of differential equations has them.
class Solution : public nn::Cell {
 public:
  MPC_CELL(Solution, first, second)
  std::vector<Tensor> Construct(Tensor x) {
    const Tensor u = second(tanh(first(x)));
    const Tensor slope = ops::Grad(reduce_sum(u), {x})[0];
    return {u, ops::Grad(reduce_sum(slope), {x})[0]};
  }
  nn::Dense first{1, 16};
  nn::Dense second{16, 1};
};

/// u'' + u = 0, with u as the label says.
class EquationLoss : public nn::LossBase {
 public:
  MPC_CELL(EquationLoss)
  Tensor Construct(const Tensor& u, const Tensor& curvature, const Tensor& label) {
    return reduce_mean(square(curvature + u)) + reduce_mean(square(u - label));
  }
};

TEST(Grad, NetworksOfDerivativesTrainAndPredict) {
  SetSeed(5);
  std::vector<float> x(32), sines(32);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i) / 8 - 2;
    sines[i] = std::sin(x[i]);
  }
  const Tensor points = Tensor::From(x, {32, 1});
  for (const char* level : {"O0", "O1"}) {
    Solution network;
    EquationLoss loss;
    nn::Adam optimizer(network.TrainableParams(), {.learning_rate = 0.02});
    Model model(network, loss, optimizer, {.amp_level = level});
    const data::Dataset batches = data::GeneratorDataset({{points, Tensor::From(sines, {32, 1})}}, {"x", "u"});
    MPC_ASSERT_OK(model.Train(400, batches));
    const std::vector<Tensor> predicted = model.PredictAll({points}).value();
    EXPECT_THAT(predicted[0].ToFloats(), Pointwise(FloatNear(0.1f), sines)) << level;
    for (float& value : sines) value = -value;
    EXPECT_THAT(predicted[1].ToFloats(), Pointwise(FloatNear(0.5f), sines)) << level;
    for (float& value : sines) value = -value;
  }
}

}  // namespace
}  // namespace mpc
