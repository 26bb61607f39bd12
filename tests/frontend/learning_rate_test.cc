// Learning-rate schedules in the graph, and parameter groups.
#include "frontend/nn/learning_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "tests/frontend/error_of.h"
#include "tests/training/probe.h"

namespace mpc {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::Probe;
using testing::SumLoss;

class RateRecorder : public Callback {
 public:
  void OnStepEnd(RunContext& context) override { rates.push_back(context.learning_rate.value_or(-1)); }
  std::vector<double> rates;
};

/// Trains a Probe by SGD with gradient 1; returns the recorded rate of each step. The weight moves by these rates.
std::vector<double> RatesOf(const nn::LearningRate& rate, int steps) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = rate});
  Model model(network, loss, optimizer, {.record_learning_rate = true});
  RateRecorder recorder;
  const data::Row row = {Tensor::Full({1}, 1.0), Tensor::Full({1}, 0.0)};
  MPC_EXPECT_OK(
      model.Train(1, testing::Batches(std::vector<data::Row>(static_cast<std::size_t>(steps), row)), {recorder}));
  double sum = 0;
  for (double recorded : recorder.rates) sum += recorded;
  EXPECT_NEAR(network.weight.Value()->Item<double>(), -sum, 1e-6 * steps);
  EXPECT_EQ(model.compiled().size(), 1u);
  return recorder.rates;
}

// The rate is computed in f32: a few roundings of a number below 1, and one of the cosine near its ends.
void ExpectRates(const std::vector<double>& actual, const std::function<double(double)>& expected) {
  for (std::size_t step = 0; step < actual.size(); ++step) {
    EXPECT_NEAR(actual[step], expected(static_cast<double>(step)), 4 * 0x1p-24) << "step " << step;
  }
}

TEST(LearningRate, AConstantIsItself) {
  ExpectRates(RatesOf(0.25, 3), [](double) { return 0.25; });
}

TEST(LearningRate, StepDecay) {
  ExpectRates(RatesOf(nn::StepDecay({.learning_rate = 0.5, .decay_rate = 0.1, .step_size = 3}), 10),
              [](double step) { return 0.5 * std::pow(0.1, std::floor(step / 3)); });
}

TEST(LearningRate, CosineDecayWithWarmUp) {
  const auto cosine = [](double step) {
    if (step < 4) return 0.8 * (step + 1) / 4;
    const double progress = std::min(1.0, (step - 4) / 6);
    return 0.05 + (0.8 - 0.05) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
  };
  ExpectRates(
      RatesOf(nn::CosineDecay({.learning_rate = 0.8, .min_learning_rate = 0.05, .total_steps = 10, .warmup_steps = 4}),
              13),
      cosine);
}

TEST(LearningRate, PolynomialDecay) {
  for (double power : {1.0, 2.0, 0.5}) {
    const auto polynomial = [&](double step) { return 0.1 + 0.4 * std::pow(1 - std::min(step, 8.0) / 8, power); };
    ExpectRates(
        RatesOf(nn::PolynomialDecay({.learning_rate = 0.5, .end_learning_rate = 0.1, .decay_steps = 8, .power = power}),
                10),
        polynomial);
  }
}

TEST(LearningRate, ExponentialDecay) {
  for (bool stair : {false, true}) {
    const auto exponential = [&](double step) {
      const double decays = step / 3;
      return 0.5 * std::pow(0.8, stair ? std::floor(decays) : decays);
    };
    ExpectRates(
        RatesOf(nn::ExponentialDecay({.learning_rate = 0.5, .decay_rate = 0.8, .decay_steps = 3, .is_stair = stair}),
                10),
        exponential);
  }
}

/// PyTorch's CosineAnnealingWarmRestarts, cycle by cycle.
double WithRestarts(double step, double length, double factor) {
  while (step >= length) {
    step -= length;
    length *= factor;
  }
  return 0.05 + (0.8 - 0.05) * 0.5 * (1 + std::cos(std::numbers::pi * step / length));
}

TEST(LearningRate, CosineAnnealingWarmRestarts) {
  for (std::int64_t factor : {1, 2, 3}) {
    ExpectRates(
        RatesOf(nn::CosineAnnealingWarmRestarts({.learning_rate = 0.8, .t_0 = 3, .t_mult = factor, .eta_min = 0.05}),
                25),
        [&](double step) { return WithRestarts(step, 3, static_cast<double>(factor)); });
  }
}

/// PyTorch's OneCycleLR of two phases over 12 updates, of which 5 rise.
double OneCycleRate(double step, bool linear) {
  const double peak = 5.0 / 12 * 12 - 1;
  const bool rises = step <= peak;
  const double from = rises ? 0.8 / 4 : 0.8;
  const double to = rises ? 0.8 : 0.8 / 4 / 100;
  const double share = std::min(1.0, rises ? step / peak : (step - peak) / (11 - peak));
  if (linear) return from + (to - from) * share;
  return to + (from - to) / 2 * (std::cos(std::numbers::pi * share) + 1);
}

TEST(LearningRate, OneCycle) {
  for (bool linear : {false, true}) {
    const std::vector<double> rates = RatesOf(nn::OneCycle({.max_lr = 0.8,
                                                            .total_steps = 12,
                                                            .pct_start = 5.0 / 12,
                                                            .anneal_strategy = linear ? "linear" : "cos",
                                                            .div_factor = 4,
                                                            .final_div_factor = 100}),
                                              15);
    ExpectRates(rates, [&](double step) { return OneCycleRate(step, linear); });
    EXPECT_NEAR(rates[4], 0.8, 0x1p-23) << "the peak";
    EXPECT_NEAR(rates[14], 0.002, 1e-9) << "the last rate has all its digits";
  }
}

TEST(LearningRate, WarmUpInFrontOfAnySchedule) {
  ExpectRates(RatesOf(nn::WarmUp({.learning_rate = 0.5, .warmup_steps = 4}), 6),
              [](double step) { return 0.5 * std::min(1.0, (step + 1) / 4); });
  ExpectRates(
      RatesOf(nn::WarmUp({.learning_rate = nn::StepDecay({.learning_rate = 0.5, .decay_rate = 0.1, .step_size = 2}),
                          .warmup_steps = 3}),
              9),
      [](double step) { return step < 3 ? 0.5 * (step + 1) / 3 : 0.5 * std::pow(0.1, std::floor((step - 3) / 2)); });
  ExpectRates(
      RatesOf(nn::WarmUp({.learning_rate = [](Tensor step) { return exp(step * -0.5) * 0.25; }, .warmup_steps = 2}), 5),
      [](double step) { return step < 2 ? 0.25 * (step + 1) / 2 : 0.25 * std::exp(-0.5 * (step - 2)); });
}

TEST(LearningRate, AFunctionOfTheStepIsASchedule) {
  ExpectRates(RatesOf([](Tensor step) { return exp(step * -0.5) * 0.25; }, 5),
              [](double step) { return 0.25 * std::exp(-0.5 * step); });
}

/// A schedule of the user's own.
class Halving {
 public:
  Tensor Construct(Tensor step) const { return exp(step * -std::log(2.0)); }
};

TEST(LearningRate, AClassWithConstructIsASchedule) {
  ExpectRates(RatesOf(Halving(), 5), [](double step) { return std::exp2(-step); });
}

TEST(LearningRate, AMP_36_AScheduleHoldsStillOnASkippedStep) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = Halving()});
  Model model(network, loss, optimizer,
              {.loss_scale_manager = FixedLossScaleManager({.loss_scale = 4}), .record_learning_rate = true});
  RateRecorder recorder;
  std::vector<data::Row> rows;
  for (float gradient : {1.0f, testing::kInfinity, 1.0f, 1.0f}) {
    rows.push_back({Tensor::Full({1}, gradient), Tensor::Full({1}, 0.0)});
  }
  MPC_ASSERT_OK(model.Train(1, testing::Batches(rows), {recorder}));
  EXPECT_THAT(recorder.rates,
              ::testing::ElementsAre(1, ::testing::DoubleNear(0.5, 1e-7), ::testing::DoubleNear(0.5, 1e-7),
                                     ::testing::DoubleNear(0.25, 1e-7)));
  EXPECT_EQ(*optimizer.step(), 3);
}

TEST(LearningRate, RejectsBadArguments) {
  Probe network;
  const auto error = [&](const nn::LearningRate& rate) {
    return ErrorOf(nn::SGD({network.weight}, {.learning_rate = rate}).status());
  };
  EXPECT_THAT(error(nn::StepDecay({.step_size = 0})), HasSubstr("StepDecay: step_size must be at least 1, got 0"));
  EXPECT_THAT(error(nn::StepDecay({.decay_rate = 2})), HasSubstr("StepDecay: decay_rate must be in (0, 1], got 2"));
  EXPECT_THAT(error(nn::CosineDecay({.total_steps = 5, .warmup_steps = 5})),
              HasSubstr("CosineDecay: warmup_steps must be in [0, total_steps), got 5 of 5"));
  EXPECT_THAT(error(nn::CosineDecay({.learning_rate = 0.1, .min_learning_rate = 0.2})), HasSubstr("must not exceed"));
  EXPECT_THAT(error(nn::PolynomialDecay({.power = 0})), HasSubstr("PolynomialDecay: power"));
  EXPECT_THAT(error(nn::ExponentialDecay({.decay_rate = 0})),
              HasSubstr("ExponentialDecay: decay_rate must be a finite number > 0, got 0"));
  EXPECT_THAT(error(nn::ExponentialDecay({.decay_steps = 0})), HasSubstr("decay_steps must be at least 1, got 0"));
  EXPECT_THAT(error(nn::CosineAnnealingWarmRestarts({.t_mult = 0})),
              HasSubstr("CosineAnnealingWarmRestarts: t_mult must be at least 1, got 0"));
  EXPECT_THAT(error(nn::CosineAnnealingWarmRestarts({.learning_rate = 0.1, .eta_min = 0.2})),
              HasSubstr("eta_min 0.2 must not exceed learning_rate 0.1"));
  EXPECT_THAT(error(nn::OneCycle({.pct_start = 1})), HasSubstr("OneCycle: pct_start must be in (0, 1), got 1"));
  EXPECT_THAT(error(nn::OneCycle({.total_steps = 4, .pct_start = 0.25})), HasSubstr("must be more than 1, got 1"));
  EXPECT_THAT(error(nn::OneCycle({.anneal_strategy = "exp"})), HasSubstr("must be cos or linear, got 'exp'"));
  EXPECT_THAT(error(nn::OneCycle({.div_factor = 0})), HasSubstr("div_factor must be a finite number > 0, got 0"));
  EXPECT_THAT(error(nn::OneCycle({.div_factor = 1e-50})), HasSubstr("OneCycle: max_lr / div_factor must be a finite"));
  EXPECT_THAT(error(nn::OneCycle({.final_div_factor = 1e-50})), HasSubstr("div_factor / final_div_factor must be a"));
  EXPECT_THAT(error(nn::PolynomialDecay({.power = 1e300})), HasSubstr("got 1e+300, which f32 does not hold"));
  EXPECT_THAT(error(nn::WarmUp({.warmup_steps = 0})), HasSubstr("WarmUp: warmup_steps must be at least 1, got 0"));
  EXPECT_THAT(error(nn::WarmUp({.learning_rate = nn::StepDecay({.step_size = 0})})),
              HasSubstr("StepDecay: step_size must be at least 1, got 0"));
  EXPECT_EQ(error(nn::StepDecay({.decay_rate = 1})), "");
  EXPECT_THAT(error(-1.0), HasSubstr("learning_rate must be a finite number >= 0, got -1"));
  EXPECT_THAT(error(1e39), HasSubstr("got 1e+39, which f32 does not hold"));
  EXPECT_THAT(error(nn::StepDecay({.learning_rate = HUGE_VAL})),
              HasSubstr("StepDecay: learning_rate must be a finite number >= 0, got inf"));
}

TEST(LearningRate, AScheduleCannotBeSet) {
  Probe network;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = Halving()});
  EXPECT_THAT(ErrorOf(optimizer.SetLearningRate(0.1)), HasSubstr("a schedule computes the learning rate"));
  EXPECT_FALSE(optimizer.learning_rate().ok());
}

TEST(LearningRate, AScheduleMustReturnAScalar) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = [](Tensor step) { return broadcast_to(step, {2}); }});
  Model model(network, loss, optimizer);
  EXPECT_THAT(ErrorOf(model.Train(1, testing::GoodBatches({1}, 1))),
              HasSubstr("a learning-rate schedule must return a rank-0 f32 tensor, got tensor<2xf32>"));
}

// ---- Parameter groups -----------------------------------------------------------------------------------------------

/// Two weights that see the same gradient.
class TwoWeights : public nn::Cell {
 public:
  MPC_CELL(TwoWeights, first, second)
  Tensor Construct(Tensor x) { return first * x + second * x; }
  Parameter first{{1}, Constant(1.0)};
  Parameter second{{1}, Constant(1.0)};
};

struct GroupTraining {
  explicit GroupTraining(const nn::SGDOptions& options = {.learning_rate = 0.5, .weight_decay = 0.25})
      : optimizer(
            {{.params = {network.first}}, {.params = {network.second}, .learning_rate = 0.125, .weight_decay = 0.0}},
            options) {}
  absl::Status Step(float gradient) {
    return model.Train(1, testing::Batches({{Tensor::Full({1}, gradient), Tensor::Full({1}, 0.0)}}));
  }
  std::vector<float> Weights() const {
    return {network.first.Value()->Item<float>(), network.second.Value()->Item<float>()};
  }
  TwoWeights network;
  SumLoss loss;
  nn::SGD optimizer;
  Model model{network, loss, optimizer};
};

TEST(ParameterGroups, TakeANewRateAllOrNone) {
  TwoWeights network;
  nn::SGD optimizer({{.params = {network.first}}, {.params = {network.second}, .learning_rate = Halving()}},
                    {.learning_rate = 0.5});
  EXPECT_THAT(ErrorOf(optimizer.SetLearningRate(0.25)), HasSubstr("parameter group 1"));
  EXPECT_EQ(*optimizer.learning_rate(0), 0.5);
}

TEST(ParameterGroups, AMP_25_HaveTheirOwnRateAndDecay) {
  GroupTraining training;
  MPC_ASSERT_OK(training.Step(1.0f));
  EXPECT_THAT(training.Weights(), ::testing::ElementsAre(1 - 0.5 * 1.25, 1 - 0.125));
  EXPECT_EQ(training.optimizer.num_groups(), 2u);
  EXPECT_EQ(training.optimizer.weight_decay(0), 0.25);
  EXPECT_EQ(training.optimizer.weight_decay(1), 0.0);
}

TEST(ParameterGroups, AMP_25_RatesAreStateAndChangeWithoutARecompile) {
  GroupTraining training({.learning_rate = 0.5});
  MPC_ASSERT_OK(training.Step(1.0f));
  MPC_ASSERT_OK(training.optimizer.SetLearningRate(1, 0.25));
  MPC_ASSERT_OK(training.Step(1.0f));
  EXPECT_THAT(training.Weights(), ::testing::ElementsAre(0, 1 - 0.125 - 0.25));
  MPC_ASSERT_OK(training.optimizer.SetLearningRate(1.0));
  MPC_ASSERT_OK(training.Step(1.0f));
  EXPECT_THAT(training.Weights(), ::testing::ElementsAre(-1, 1 - 0.125 - 0.25 - 1));
  EXPECT_EQ(training.model.compiled().size(), 1u);
  EXPECT_EQ(testing::StateItem(training.model, "optimizer.group1.learning_rate"), 1);
  EXPECT_THAT(ErrorOf(training.optimizer.SetLearningRate(2, 0.1)), HasSubstr("parameter group 2 does not exist"));
  EXPECT_FALSE(training.optimizer.learning_rate(2).ok());
  EXPECT_EQ(*training.optimizer.learning_rate(1), 1);
}

TEST(ParameterGroups, AMP_25_FreezingAndUnfreezingBetweenSteps) {
  GroupTraining training({.learning_rate = 0.5});
  MPC_ASSERT_OK(training.Step(1.0f));
  MPC_ASSERT_OK(training.network.SetRequiresGrad("first", false));
  MPC_ASSERT_OK(training.Step(1.0f));
  EXPECT_THAT(training.Weights(), ::testing::ElementsAre(0.5, 0.75));
  MPC_ASSERT_OK(training.network.SetRequiresGrad("first", true));
  MPC_ASSERT_OK(training.Step(1.0f));
  EXPECT_THAT(training.Weights(), ::testing::ElementsAre(0, 0.625));
}

TEST(ParameterGroups, AGroupMayHaveASchedule) {
  TwoWeights network;
  SumLoss loss;
  nn::SGD optimizer({{.params = {network.first}}, {.params = {network.second}, .learning_rate = Halving()}},
                    {.learning_rate = 0.5});
  Model model(network, loss, optimizer);
  const data::Row row = {Tensor::Full({1}, 1.0), Tensor::Full({1}, 0.0)};
  MPC_ASSERT_OK(model.Train(1, testing::Batches({row, row})));
  EXPECT_EQ(network.first.Value()->Item<float>(), 0.0f);
  EXPECT_NEAR(network.second.Value()->Item<float>(), -0.5f, 1e-6);
  MPC_EXPECT_OK(optimizer.SetLearningRate(0, 0.25));
  EXPECT_FALSE(optimizer.SetLearningRate(1, 0.25).ok());
}

TEST(ParameterGroups, RejectEmptyGroupsAndRepeatedParameters) {
  TwoWeights network;
  EXPECT_THAT(ErrorOf(nn::SGD({{.params = {network.first}}, {.params = {}}}).status()),
              HasSubstr("parameter group 1 is empty"));
  EXPECT_THAT(ErrorOf(nn::SGD({{.params = {network.first}}, {.params = {network.first}}}).status()),
              HasSubstr("is given twice, in parameter groups 0 and 1"));
  EXPECT_THAT(ErrorOf(nn::SGD({{.params = {network.second}}, {.params = {network.first, network.first}}}).status()),
              HasSubstr("is given twice, in parameter group 1"));
  EXPECT_THAT(ErrorOf(nn::SGD({{.params = {network.first}, .weight_decay = -1.0}}).status()),
              HasSubstr("weight_decay must be a finite number >= 0, got -1"));
}

TEST(Optimizer, MayLeaveNormsWithoutDecayWhereUngrouped) {
  const auto gamma_after = [](bool skip) {
    testing::Training<testing::ConvNorm> parts({"O0", {}});
    nn::SGD optimizer(parts.network->TrainableParams(),
                      {.learning_rate = 0.0, .weight_decay = 0.5, .skip_decay_of_norms = skip});
    MPC_EXPECT_OK(optimizer.SetLearningRate(1.0));
    MPC_EXPECT_OK(parts.network->SetParameter("conv.weight", Tensor::Zeros({4, 2, 3, 3})));
    Model model(*parts.network, parts.loss, optimizer);
    MPC_EXPECT_OK(model.Train(1, testing::GoodBatches({2, 6, 6}, 1)));
    return parts.network->norm.gamma.Value()->ToFloats();
  };
  // A convolution of zeros gives gamma no gradient: only decay moves it.
  EXPECT_THAT(gamma_after(false), ::testing::Each(0.5f));
  EXPECT_THAT(gamma_after(true), ::testing::Each(1.0f));
}

}  // namespace
}  // namespace mpc
