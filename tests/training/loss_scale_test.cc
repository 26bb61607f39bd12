// The loss-scale state machine inside compiled training steps.
#include "tests/training/probe.h"

namespace mpc::testing {
namespace {

class LossScaleAtLevel : public ::testing::TestWithParam<Level> {};

// AMP-10: 4 * 0.25 = 1.
TEST_P(LossScaleAtLevel, AMP_10_UnscaledGradientsAreExact) {
  ProbeTraining training(GetParam(), FixedLossScaleManager({.loss_scale = 4.0}), 3);
  MPC_ASSERT_OK(training.Step({1.0f, -0.25f, 1024.0f}));
  EXPECT_EQ(training.Weight(), (std::vector<float>{-1.0f, 0.25f, -1024.0f}));
  EXPECT_EQ(training.model.skipped_steps(), 0);
}

// AMP-10: whatever is not finite is found wherever it stands.
TEST_P(LossScaleAtLevel, AMP_10_NonFiniteGradientsAreFoundAnywhere) {
  for (std::int64_t size : {1, 2, 31, 4097, 65537}) {
    ProbeTraining training(GetParam(), FixedLossScaleManager({.loss_scale = 2.0}), size);
    std::int64_t skipped = 0;
    for (std::int64_t position : {std::int64_t{0}, size / 2, size - 1}) {
      for (float bad : {kInfinity, -kInfinity, kNan}) {
        std::vector<float> gradient(static_cast<std::size_t>(size), 0.5f);
        gradient[static_cast<std::size_t>(position)] = bad;
        MPC_ASSERT_OK(training.Step(gradient));
        ASSERT_EQ(training.model.skipped_steps(), ++skipped) << bad << " at " << position << " of " << size;
      }
    }
    EXPECT_EQ(training.Weight(), std::vector<float>(static_cast<std::size_t>(size), 0.0f));
  }
}

// AMP-11.
TEST_P(LossScaleAtLevel, AMP_11_StateWalk) {
  ProbeTraining training(GetParam(), DynamicScale(4, 2, 0.25, 2));
  const auto expect = [&](double scale, double good) {
    EXPECT_EQ(training.model.loss_scale(), scale);
    EXPECT_EQ(StateItem(training.model, "scaler.good"), good);
  };
  MPC_ASSERT_OK(training.Step(1.0f));
  expect(4, 1);
  MPC_ASSERT_OK(training.Step(1.0f));
  expect(8, 0);
  MPC_ASSERT_OK(training.Step(kInfinity));
  expect(2, 0);
}

// AMP-12.
TEST_P(LossScaleAtLevel, AMP_12_Replay) {
  ProbeTraining training(GetParam(), DynamicScale(4, 2, 0.5, 2));
  const std::vector<float> gradients = {20, kInfinity, 10, kInfinity};
  const std::vector<double> scales = {4, 2, 2, 1};
  const std::vector<double> counters = {1, 0, 1, 0};
  for (std::size_t step = 0; step < gradients.size(); ++step) {
    MPC_ASSERT_OK(training.Step(gradients[step]));
    EXPECT_EQ(training.model.loss_scale(), scales[step]) << step;
    EXPECT_EQ(StateItem(training.model, "scaler.good"), counters[step]) << step;
  }
  EXPECT_EQ(training.Weight(), std::vector<float>{-30.0f});
  EXPECT_EQ(training.model.skipped_steps(), 2);
}

// AMP-16: no scale cures the forward pass.
TEST_P(LossScaleAtLevel, AMP_16_NonFiniteLossAloneSkipsWithoutBackoff) {
  ProbeTraining training(GetParam(), DynamicScale(4, 2, 0.5, 2));
  MPC_ASSERT_OK(training.Step(1.0f));
  MPC_ASSERT_OK(training.Step(1.0f, kInfinity));
  EXPECT_EQ(training.Weight(), std::vector<float>{-1.0f});
  EXPECT_EQ(training.model.skipped_steps(), 1);
  EXPECT_EQ(training.model.loss_scale(), 4);
  EXPECT_EQ(StateItem(training.model, "scaler.good"), 1);
  MPC_ASSERT_OK(training.Step(1.0f, kNan));
  EXPECT_EQ(training.model.skipped_steps(), 2);
  EXPECT_EQ(training.model.loss_scale(), 4);
}

LossScaleConfig StaticScale(double scale, bool skip) {
  LossScaleConfig config;
  config.mode = LossScaleConfig::Mode::kStatic;
  config.init = scale;
  config.skip = skip;
  return config;
}

// AMP-19: apex does not skip with a static scale.
TEST_P(LossScaleAtLevel, AMP_19_StaticScaleWithoutSkipUpdates) {
  ProbeTraining training(GetParam(), StaticScale(128, /*skip=*/false));
  MPC_ASSERT_OK(training.Step(1.0f));
  EXPECT_EQ(training.Weight()[0], -1.0f);
  MPC_ASSERT_OK(training.Step(kInfinity));
  EXPECT_FALSE(std::isfinite(training.Weight()[0]));
  EXPECT_EQ(training.model.skipped_steps(), 0);
  EXPECT_EQ(training.model.loss_scale(), 128);
}

// AMP-19: Paddle skips with a static scale too.
TEST_P(LossScaleAtLevel, AMP_19_StaticScaleWithSkipSkips) {
  ProbeTraining training(GetParam(), StaticScale(128, /*skip=*/true));
  MPC_ASSERT_OK(training.Step(kInfinity));
  EXPECT_EQ(training.Weight()[0], 0.0f);
  EXPECT_EQ(training.model.skipped_steps(), 1);
  EXPECT_EQ(training.model.loss_scale(), 128);
}

// AMP-19: MindSpore's manager by its flag; without dropping the optimizer divides.
TEST_P(LossScaleAtLevel, AMP_19_FixedManagerFollowsDropOverflowUpdate) {
  ProbeTraining drops(GetParam(), FixedLossScaleManager({.loss_scale = 64}));
  MPC_ASSERT_OK(drops.Step(kInfinity));
  MPC_ASSERT_OK(drops.Step(2.0f));
  EXPECT_EQ(drops.Weight()[0], -2.0f);
  EXPECT_EQ(drops.model.skipped_steps(), 1);

  ProbeTraining updates(GetParam(), FixedLossScaleManager({.loss_scale = 64, .drop_overflow_update = false}), 1, 64);
  MPC_ASSERT_OK(updates.Step(2.0f));
  EXPECT_EQ(updates.Weight()[0], -2.0f);
  MPC_ASSERT_OK(updates.Step(kInfinity));
  EXPECT_FALSE(std::isfinite(updates.Weight()[0]));
  EXPECT_EQ(updates.model.skipped_steps(), 0);
}

INSTANTIATE_TEST_SUITE_P(Levels, LossScaleAtLevel, ::testing::ValuesIn(AllLevels()), LevelName);

TEST(LossScale, StuckAtTheSmallestScaleIsAnError) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams());
  Model model(network, loss, optimizer, {.loss_scale_manager = DynamicScale(4, 2, 0.5, 2), .max_consecutive_skips = 5});
  const data::Row bad = {Tensor::From({kInfinity}, {1}), Tensor::From({0.0f}, {1})};
  const absl::Status status = model.Train(1, Batches(std::vector<data::Row>(10, bad)));
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("5 steps in a row were not finite at loss scale 1"), std::string::npos) << status;
  EXPECT_NE(status.message().find("weight"), std::string::npos) << status;
  EXPECT_EQ(model.global_step(), 5);
}

TEST(LossScale, TheFirstMessageNamesTheGradientAndBothScales) {
  ProbeTraining training({"O0", {}}, DynamicScale(4, 2, 0.5, 2));
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(training.Step(kInfinity));
  MPC_ASSERT_OK(training.Step(kInfinity));
  const std::string output = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(
      output.find("overflow at epoch 1 step 1: the gradient of weight is not finite; loss scale 4 -> 2; step skipped"),
      std::string::npos)
      << output;
  EXPECT_EQ(Count(output, "overflow at"), 1) << "one message a run of overflows";
}

}  // namespace
}  // namespace mpc::testing
