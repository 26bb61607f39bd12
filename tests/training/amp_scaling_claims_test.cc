// Claims about the loss scale that the state machine's own tests leave open: in compiled steps, at every level.
#include <gmock/gmock.h>

#include "tests/training/several_losses.h"

namespace mpc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ScalingAtLevel : public ::testing::TestWithParam<Level> {};

/// Three weights of their own.
class ThreeProbes : public nn::Cell {
 public:
  MPC_CELL(ThreeProbes, first, second, third)
  Tensor Construct(Tensor x, Tensor y, Tensor z) { return concat({first(x), second(y), third(z)}, 0); }
  Probe first{1}, second{33}, third{5};
};

// AMP-10: in any gradient of several.
TEST_P(ScalingAtLevel, AMP_10_NonFiniteValuesAreFoundInAnyGradient) {
  ThreeProbes network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  Model model(network, loss, optimizer,
              {.amp_level = GetParam().level,
               .loss_scale_manager = FixedLossScaleManager({.loss_scale = 2}),
               .amp_dtype = GetParam().dtype});
  const std::vector<Probe*> probes = {&network.first, &network.second, &network.third};
  std::int64_t skipped = 0;
  for (std::size_t which = 0; which < probes.size(); ++which) {
    for (float bad : {kInfinity, -kInfinity, kNan}) {
      data::Row row;
      for (const Probe* probe : probes) row.push_back(Tensor::Full(probe->weight.shape(), 0.5));
      std::vector<float> values = row[which].ToFloats();
      values.back() = bad;
      row[which] = Tensor::From(values, row[which].shape());
      row.push_back(Tensor::Full({1}, 0.0));
      MPC_ASSERT_OK(model.Train(1, data::GeneratorDataset({row}, {"x", "y", "z", "offset"})));
      EXPECT_EQ(model.skipped_steps(), ++skipped) << bad << " in gradient " << which;
    }
  }
  for (const Probe* probe : probes) {
    for (float value : probe->weight.Value()->ToFloats()) EXPECT_EQ(value, 0.0f);
  }
}

// AMP-13: 2^126 is the largest scale with a normal reciprocal. Zero gradients stay zero where the scale fits the type.
TEST_P(ScalingAtLevel, AMP_13_GrowthStaysFinite) {
  if (GetParam().dtype == DType::kF16) GTEST_SKIP() << "f16 cotangents overflow at such scales, so that none grows";
  ProbeTraining training(GetParam(), DynamicScale(0x1p122, 16, 0.5, 1));
  for (int step = 0; step < 4; ++step) MPC_ASSERT_OK(training.Step(0.5f));
  EXPECT_EQ(training.model.skipped_steps(), 0);
  EXPECT_EQ(training.model.loss_scale(), 0x1p126);
  EXPECT_EQ(training.Weight(), std::vector<float>{-2.0f});
}

// AMP-13: 1e38 is beyond 2^126 and told so, with its range.
TEST(LossScaleRange, AMP_13_AScaleBeyondTheLargestIsRefused) {
  const ProbeTraining training({"O0", {}}, DynamicScale(1e38, 16, 0.5, 1));
  EXPECT_FALSE(training.model.status().ok());
  EXPECT_THAT(std::string(training.model.status().message()), HasSubstr("init"));
}

// AMP-14: 4, 2, 1, 1, ...; after `max_consecutive_skips` of them the run ends, with the diagnosis.
TEST_P(ScalingAtLevel, AMP_14_BackoffStopsAtTheMinimumAndTheDiagnosisFires) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  Model model(network, loss, optimizer,
              {.amp_level = GetParam().level,
               .loss_scale_manager = DynamicScale(4, 2, 0.5, 2),
               .amp_dtype = GetParam().dtype,
               .max_consecutive_skips = 6});
  const data::Row bad = {Tensor::Full({1}, kInfinity), Tensor::Full({1}, 0.0)};
  std::vector<double> scales;
  for (int step = 0; step < 4; ++step) {
    MPC_ASSERT_OK(model.Train(1, Batches({bad})));
    scales.push_back(model.loss_scale());
  }
  EXPECT_THAT(scales, ElementsAre(2, 1, 1, 1));
  const absl::Status status = model.Train(1, Batches(std::vector<data::Row>(10, bad)));
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("6 steps in a row were not finite at loss scale 1"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("first value that is not finite"));
  EXPECT_EQ(model.loss_scale(), 1);
}

// AMP-15: a finite step between two overflows begins the count again.
TEST_P(ScalingAtLevel, AMP_15_OnlyConsecutiveOverflowsCountTowardsABackoff) {
  LossScaleConfig config = DynamicScale(16, 2, 0.5, 100);
  config.backoff_interval = 2;
  ProbeTraining training(GetParam(), config);
  std::vector<double> scales;
  for (float gradient : {kInfinity, 1.0f, kInfinity, 1.0f, kInfinity, kNan, kInfinity}) {
    MPC_ASSERT_OK(training.Step(gradient));
    scales.push_back(training.model.loss_scale());
  }
  EXPECT_THAT(scales, ElementsAre(16, 16, 16, 16, 16, 8, 8));
  EXPECT_EQ(StateItem(training.model, "scaler.bad"), 1);
}

// AMP-36: the rate follows the steps that were made: 1, (1/2), 1/2, 1/4.
TEST_P(ScalingAtLevel, AMP_36_AScheduleInTheGraphHoldsStillOnASkippedStep) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(),
                    {.learning_rate = nn::StepDecay({.learning_rate = 1.0, .decay_rate = 0.5, .step_size = 1})});
  Model model(network, loss, optimizer,
              {.amp_level = GetParam().level,
               .loss_scale_manager = FixedLossScaleManager({.loss_scale = 4}),
               .amp_dtype = GetParam().dtype});
  const std::vector<float> weights = {-1.0f, -1.0f, -1.5f, -1.75f};
  std::size_t step = 0;
  for (float gradient : {1.0f, kInfinity, 1.0f, 1.0f}) {
    MPC_ASSERT_OK(model.Train(1, Batches({{Tensor::Full({1}, gradient), Tensor::Full({1}, 0.0)}})));
    EXPECT_FLOAT_EQ(WeightOf(network), weights[step]) << step;
    ++step;
  }
  EXPECT_EQ(*optimizer.step(), 3);
}

INSTANTIATE_TEST_SUITE_P(Levels, ScalingAtLevel, ::testing::ValuesIn(AllLevels()), LevelName);

/// A weight of the level's type and one that is pinned to f32.
class LowAndPinned : public nn::Cell {
 public:
  MPC_CELL(LowAndPinned, low, pinned)
  LowAndPinned() { pinned.ToFloat(DType::kF32); }
  Tensor Construct(Tensor x, Tensor y) { return reduce_sum(low(x)) + reduce_sum(pinned(y)); }
  Probe low, pinned;
};

/// Two of them, two losses, two optimizers.
class TwoLowAndPinnedStep : public nn::TrainingStep {
 public:
  MPC_CELL(TwoLowAndPinnedStep, first, second)
  Tensor Construct(Tensor a, Tensor b, Tensor c, Tensor d) {
    const Tensor loss_x = first(a, b);
    const Tensor loss_y = second(c, d);
    const bool stepped = optimizer_x(ops::Backward(loss_x, optimizer_x.parameters())) &&
                         optimizer_y(ops::Backward(loss_y, optimizer_y.parameters()));
    return ops::Depend(loss_x + loss_y, stepped);
  }
  LowAndPinned first, second;
  nn::SGD optimizer_x{first.TrainableParams(), {.learning_rate = 1.0}};
  nn::SGD optimizer_y{second.TrainableParams(), {.learning_rate = 1.0}};
};

class OverflowsOfTwoTypes : public ::testing::TestWithParam<Level> {};

// AMP-21: whether a low or an f32 parameter's gradient overflows, the optimizer of its loss skips and no other.
TEST_P(OverflowsOfTwoTypes, AMP_21_InALowOrAnF32GradientExactlyItsOptimizerSkips) {
  for (std::int64_t scalers : {1, 2}) {
    for (std::size_t bad = 0; bad < 4; ++bad) {
      TwoLowAndPinnedStep step;
      Model model(step, {.amp_level = GetParam().level,
                         .loss_scale_manager = DynamicScale(16, 2, 0.5, 100),
                         .amp_dtype = GetParam().dtype,
                         .amp = {.num_losses = scalers}});
      data::Row row;
      for (std::size_t i = 0; i < 4; ++i) row.push_back(Tensor::Full({1}, i == bad ? kInfinity : 1.0f));
      MPC_ASSERT_OK(model.Train(1, data::GeneratorDataset({row}, {"a", "b", "c", "d"})));
      const bool in_first = bad < 2;
      EXPECT_EQ(WeightOf(step.first.low), in_first ? 0 : -1) << bad;
      EXPECT_EQ(WeightOf(step.first.pinned), in_first ? 0 : -1) << bad;
      EXPECT_EQ(WeightOf(step.second.low), in_first ? -1 : 0) << bad;
      EXPECT_EQ(WeightOf(step.second.pinned), in_first ? -1 : 0) << bad;
      EXPECT_EQ(model.loss_scale(0), scalers == 1 || in_first ? 8 : 16) << bad;
      if (scalers == 1) continue;
      EXPECT_EQ(model.loss_scale(1), in_first ? 16 : 8) << bad;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, OverflowsOfTwoTypes, ::testing::ValuesIn(AllLevels()), LevelName);

}  // namespace
}  // namespace mpc::testing
