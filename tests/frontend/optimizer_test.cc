#include "frontend/nn/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/training/probe.h"
#include "tests/training/two_optimizer_step.h"

namespace mpc {
namespace {

using ::testing::HasSubstr;
using testing::Probe;
using testing::SumLoss;

constexpr int kSteps = 5;

float GradientAt(int step) { return 0.5f * static_cast<float>(step + 1) - 1.2f; }

/// Trains one weight, from 1.5, with known gradients; returns it after every step.
std::vector<double> TrainProbe(const std::function<std::unique_ptr<nn::Optimizer>(std::vector<Parameter>)>& make,
                               LossScaleChoice manager = nullptr) {
  Probe network(1, 1.5);
  SumLoss loss;
  const std::unique_ptr<nn::Optimizer> optimizer = make(network.TrainableParams());
  Model model(network, loss, *optimizer, {.loss_scale_manager = manager});
  std::vector<double> weights;
  for (int step = 0; step < kSteps; ++step) {
    const float gradient = GradientAt(step);
    MPC_EXPECT_OK(model.Train(1, testing::Batches({{Tensor::From({gradient}, {1}), Tensor::From({0.0f}, {1})}})));
    weights.push_back(network.weight.Value()->Item<double>());
  }
  EXPECT_EQ(*optimizer->step(), kSteps);
  return weights;
}

/// The same in f64 by a closed rule: (step, weight, gradient) -> new weight.
std::vector<double> Expected(const std::function<double(int, double, double)>& rule) {
  std::vector<double> weights;
  double weight = 1.5;
  for (int step = 0; step < kSteps; ++step) weights.push_back(weight = rule(step, weight, GradientAt(step)));
  return weights;
}

// A few roundings to f32 a step.
void ExpectFollows(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-6) << "step " << i;
}

template <typename Optimizer, typename Options>
auto Make(const Options& options) {
  return [options](std::vector<Parameter> parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  };
}

TEST(SGD, PlainAndWithDecay) {
  ExpectFollows(TrainProbe(Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1})),
                Expected([](int, double w, double g) { return w - 0.1 * g; }));
  ExpectFollows(TrainProbe(Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1, .weight_decay = 0.02})),
                Expected([](int, double w, double g) { return w - 0.1 * (g + 0.02 * w); }));
}

TEST(SGD, MomentumStartsWithTheFirstGradient) {
  double v = 0;
  ExpectFollows(TrainProbe(Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1, .momentum = 0.8, .dampening = 0.3})),
                Expected([&](int step, double w, double g) {
                  v = step == 0 ? g : 0.8 * v + 0.7 * g;
                  return w - 0.1 * v;
                }));
  v = 0;
  ExpectFollows(TrainProbe(Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1, .momentum = 0.8, .nesterov = true})),
                Expected([&](int, double w, double g) {
                  v = 0.8 * v + g;
                  return w - 0.1 * (g + 0.8 * v);
                }));
}

TEST(Momentum, PlainNesterovAndDecay) {
  double v = 0;
  ExpectFollows(TrainProbe(Make<nn::Momentum>(nn::MomentumOptions{.learning_rate = 0.1, .momentum = 0.9})),
                Expected([&](int, double w, double g) {
                  v = 0.9 * v + g;
                  return w - 0.1 * v;
                }));
  v = 0;
  ExpectFollows(TrainProbe(Make<nn::Momentum>(nn::MomentumOptions{
                    .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .use_nesterov = true})),
                Expected([&](int, double w, double g) {
                  g += 0.01 * w;
                  v = 0.9 * v + g;
                  return w - 0.1 * (g + 0.9 * v);
                }));
}

TEST(Adam, CorrectsBiasAndCouplesDecay) {
  for (double decay : {0.0, 0.05}) {
    double m = 0;
    double v = 0;
    ExpectFollows(TrainProbe(Make<nn::Adam>(nn::AdamOptions{.learning_rate = 0.01, .weight_decay = decay})),
                  Expected([&](int step, double w, double g) {
                    g += decay * w;
                    m = 0.9 * m + 0.1 * g;
                    v = 0.999 * v + 0.001 * g * g;
                    const double t = step + 1;
                    const double rate = 0.01 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
                    return w - rate * m / (std::sqrt(v) + 1e-8);
                  }));
  }
}

TEST(AdamWeightDecay, HasNoBiasCorrectionAndDecoupledDecay) {
  double m = 0;
  double v = 0;
  ExpectFollows(
      TrainProbe(Make<nn::AdamWeightDecay>(nn::AdamWeightDecayOptions{.learning_rate = 0.01, .weight_decay = 0.1})),
      Expected([&](int, double w, double g) {
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        return w - 0.01 * (m / (std::sqrt(v) + 1e-6) + 0.1 * w);
      }));
}

TEST(AdamW, AMP_30_CorrectsBiasAndDecouplesDecay) {
  for (double decay : {0.0, 0.1}) {
    double m = 0;
    double v = 0;
    ExpectFollows(TrainProbe(Make<nn::AdamW>(nn::AdamWOptions{.learning_rate = 0.01, .weight_decay = decay})),
                  Expected([&](int step, double w, double g) {
                    const double t = step + 1;
                    w -= 0.01 * decay * w;
                    m = 0.9 * m + 0.1 * g;
                    v = 0.999 * v + 0.001 * g * g;
                    const double rate = 0.01 / (1 - std::pow(0.9, t));
                    return w - rate * m / (std::sqrt(v) / std::sqrt(1 - std::pow(0.999, t)) + 1e-8);
                  }));
  }
}

TEST(Lamb, AMP_30_ScalesTheStepByTheWeightsNorm) {
  double m = 0;
  double v = 0;
  ExpectFollows(TrainProbe(Make<nn::Lamb>(nn::LambOptions{.learning_rate = 0.01, .weight_decay = 0.1})),
                Expected([&](int step, double w, double g) {
                  const double t = step + 1;
                  m = 0.9 * m + 0.1 * g;
                  v = 0.999 * v + 0.001 * g * g;
                  const double u =
                      m / (1 - std::pow(0.9, t)) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-6) + 0.1 * w;
                  const double ratio = w == 0 || u == 0 ? 1.0 : std::min(10.0, std::abs(w) / std::abs(u));
                  return w - 0.01 * ratio * u;
                }));
}

TEST(Optimizer, LossScaleDividesGradients) {
  // The manager scales, the optimizer divides.
  const auto fixed = [](double scale) {
    return FixedLossScaleManager({.loss_scale = scale, .drop_overflow_update = false});
  };
  const auto plain = TrainProbe(Make<nn::Momentum>(nn::MomentumOptions{.learning_rate = 0.1, .weight_decay = 0.01}));
  const auto scaled = TrainProbe(
      Make<nn::Momentum>(nn::MomentumOptions{.learning_rate = 0.1, .weight_decay = 0.01, .loss_scale = 8}), fixed(8));
  EXPECT_EQ(plain, scaled) << "powers of two are exact; decay is not divided";
  const auto sgd = TrainProbe(Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1}));
  EXPECT_EQ(sgd, TrainProbe(Make<nn::SGD>(nn::SGDOptions{.learning_rate = 0.1, .loss_scale = 32}), fixed(32)));
  const auto adam = TrainProbe(Make<nn::Adam>(nn::AdamOptions{}));
  EXPECT_EQ(adam, TrainProbe(Make<nn::Adam>(nn::AdamOptions{.loss_scale = 4}), fixed(4)));
}

// Gradients divided by 1024 that nothing has multiplied train to nothing.
TEST(Optimizer, ALossScaleThatNothingScalesIsAnErrorByName) {
  const auto error = [](const char* level, LossScaleChoice manager) {
    testing::ProbeTraining training({level, {}}, std::move(manager), 1, 1024);
    return std::string(training.Step(1.0f).message());
  };
  const auto says =
      ::testing::AllOf(HasSubstr("an optimizer divides a gradient by its loss_scale = 1024, and no scale is "
                                 "left for it to divide; it is the gradient of 'weight'"),
                       HasSubstr("optimizer"));
  EXPECT_THAT(error("O0", {}), says);
  EXPECT_THAT(error("O0", nullptr), says);
  EXPECT_THAT(error("O2", {}), says) << "the level's scaler unscales by itself";
  EXPECT_THAT(error("O2", FixedLossScaleManager({.loss_scale = 1024})), says) << "so does one that drops updates";
  EXPECT_EQ(error("O2", FixedLossScaleManager({.loss_scale = 1024, .drop_overflow_update = false})), "");
}

TEST(Optimizer, SetLearningRateActsWithoutARecompile) {
  testing::ProbeTraining training({"O0", {}}, nullptr);
  MPC_ASSERT_OK(training.Step(1.0f));
  MPC_ASSERT_OK(training.optimizer.SetLearningRate(0.25));
  MPC_ASSERT_OK(training.Step(1.0f));
  EXPECT_EQ(training.Weight()[0], -1.25f);
  EXPECT_EQ(*training.optimizer.learning_rate(), 0.25);
  EXPECT_EQ(training.model.compiled().size(), 1u);
  EXPECT_FALSE(training.optimizer.SetLearningRate(-1).ok());
  EXPECT_FALSE(training.optimizer.SetLearningRate(NAN).ok());
  EXPECT_EQ(*training.optimizer.learning_rate(), 0.25);
}

TEST(Optimizer, RejectsBadArguments) {
  Probe network;
  const auto message = [](const nn::Optimizer& optimizer) { return std::string(optimizer.status().message()); };
  EXPECT_THAT(message(nn::SGD({})), HasSubstr("got no parameters"));
  EXPECT_THAT(message(nn::SGD({network.weight, network.weight})), HasSubstr("given twice"));
  EXPECT_THAT(message(nn::SGD({Parameter()})), HasSubstr("parameter 0 is undefined"));
  EXPECT_THAT(message(nn::SGD({network.weight}, {.learning_rate = -1})), HasSubstr("learning_rate"));
  EXPECT_THAT(message(nn::SGD({network.weight}, {.nesterov = true})), HasSubstr("nesterov"));
  EXPECT_THAT(message(nn::Momentum({network.weight}, {.momentum = -0.1})), HasSubstr("momentum"));
  EXPECT_THAT(message(nn::Momentum({network.weight}, {.loss_scale = 0})), HasSubstr("loss_scale"));
  EXPECT_THAT(message(nn::Adam({network.weight}, {.beta1 = 1})), HasSubstr("beta1"));
  // Kernels hold them in f32.
  const std::string rounds = "beta1 and beta2 must be in [0, 1), and beta2 rounds to 1 in f32: 1 - beta2 is 1e-08";
  EXPECT_THAT(message(nn::Adam({network.weight}, {.beta2 = 1 - 1e-8})), HasSubstr(rounds));
  EXPECT_THAT(message(nn::AdamW({network.weight}, {.beta1 = 1 - 1e-8})), HasSubstr("beta1 rounds to 1 in f32"));
  EXPECT_EQ(message(nn::AdamW({network.weight}, {.beta1 = 1 - 1e-7})), "");
  // The Model returns it before anything is compiled.
  SumLoss loss;
  nn::SGD twice({network.weight, network.weight});
  Model model(network, loss, twice);
  EXPECT_THAT(std::string(model.Train(1, testing::GoodBatches({1}, 1)).message()), HasSubstr("given twice"));
}

TEST(Optimizer, FrozenParametersKeepValuesAndSlots) {
  testing::Training<testing::TwoLayers> training({"O0", {}});
  MPC_ASSERT_OK(training.model->Train(1, testing::GoodBatches({6}, 2)));
  MPC_ASSERT_OK(training.network->SetRequiresGrad("fc1", false));
  const testing::Snapshot before = testing::StateOf(*training.model);
  MPC_ASSERT_OK(training.model->Train(1, testing::GoodBatches({6}, 2)));
  const testing::Snapshot after = testing::StateOf(*training.model);
  EXPECT_THAT(testing::Differences(before, after),
              ::testing::UnorderedElementsAre("fc2.weight", "fc2.bias", "optimizer.fc2.weight.velocity",
                                              "optimizer.fc2.bias.velocity", "optimizer.step"));
  MPC_ASSERT_OK(training.network->SetRequiresGrad("fc1", true));
  MPC_ASSERT_OK(training.model->Train(1, testing::GoodBatches({6}, 1)));
  EXPECT_NE(testing::StateOf(*training.model).at("fc1.weight"), after.at("fc1.weight"));
}

TEST(Optimizer, OverflowInAFrozenParameterIsNone) {
  testing::ProbeTraining training({"O0", {}}, FixedLossScaleManager({.loss_scale = 2}), 1);
  training.network.weight.set_requires_grad(false);
  MPC_ASSERT_OK(training.Step(1.0f));
  EXPECT_EQ(training.Weight()[0], 0.0f);
  EXPECT_EQ(training.model.skipped_steps(), 0);
}

/// A parameter that the loss does not use.
class WithUnused : public nn::Cell {
 public:
  MPC_CELL(WithUnused, fc, unused)
  Tensor Construct(Tensor x) { return fc(x); }
  nn::Dense fc{6, 3};
  Parameter unused{{4}, Ones()};
};

TEST(Optimizer, DecayDoesNotTouchWhatTheLossDoesNotUse) {
  WithUnused network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::SGD optimizer(network.TrainableParams(), {.weight_decay = 0.1});
  Model model(network, loss, optimizer);
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(model.Train(1, testing::GoodBatches({6}, 2)));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("does not depend on operand 4 ('unused')"));
  EXPECT_THAT(network.unused.Value()->ToFloats(), ::testing::Each(1.0f));
}

TEST(Optimizer, ParametersOfAnotherNetworkAreAnError) {
  Probe network;
  Probe other(2);
  SumLoss loss;
  nn::SGD optimizer({network.weight, other.weight});
  Model model(network, loss, optimizer);
  EXPECT_THAT(std::string(model.Train(1, testing::GoodBatches({1}, 1)).message()),
              HasSubstr("the optimizer holds a parameter tensor<2xf32> that Probe does not have"));
}

TEST(Optimizer, TwoInOneStepKeepTheirOwnState) {
  SetSeed(7);
  testing::TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::WithLossCell with_loss(network, loss);
  nn::Momentum first(network.fc1.TrainableParams(), {.learning_rate = 0.05});
  nn::Adam second(network.fc2.TrainableParams(), {.learning_rate = 0.01});
  testing::TwoOptimizerStep step(with_loss, first, second);
  Model model(step);
  MPC_ASSERT_OK(model.Train(1, testing::GoodBatches({6}, 3)));
  EXPECT_EQ(*first.step(), 3);
  EXPECT_EQ(*second.step(), 3);
  EXPECT_NEAR(testing::StateItem(model, "optimizer.learning_rate"), 0.05, 1e-7);
  EXPECT_NEAR(testing::StateItem(model, "optimizer2.learning_rate"), 0.01, 1e-7);
  EXPECT_TRUE(model.State("optimizer.fc1.weight.velocity").defined());
  EXPECT_TRUE(model.State("optimizer2.fc2.weight.moment1").defined());
}

TEST(Optimizer, ParameterInTwoOptimizersIsAnError) {
  testing::TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::WithLossCell with_loss(network, loss);
  nn::Momentum first(network.TrainableParams());
  nn::Adam second(network.fc2.TrainableParams());
  network.ParametersAndNames();
  testing::TwoOptimizerStep step(with_loss, first, second);
  Model model(step);
  EXPECT_THAT(std::string(model.Train(1, testing::GoodBatches({6}, 1)).message()),
              HasSubstr("parameter 'fc2.weight' is updated by two optimizers"));
}

}  // namespace
}  // namespace mpc
