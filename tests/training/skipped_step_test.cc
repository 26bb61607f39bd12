// A step that is not finite changes nothing but the scaler.
#include <gmock/gmock.h>

#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

const Shape kImage = {2, 6, 6};

class SkippedStepAtLevel : public ::testing::TestWithParam<Level> {
 protected:
  // Small enough that good batches never overflow in f16.
  const FixedLossScaleManager fixed_{{.loss_scale = 64}};
  const DynamicLossScaleManager dynamic_{{.init_loss_scale = 256}};
};

// AMP-17.
TEST_P(SkippedStepAtLevel, AMP_17_OverflowIsAsIfTheBatchHadNotBeen) {
  Training<ConvNorm> control(GetParam(), dynamic_);
  MPC_ASSERT_OK(control.model->Train(1, GoodBatches(kImage, 3)));
  Training<ConvNorm> skipped(GetParam(), dynamic_);
  MPC_ASSERT_OK(skipped.model->Train(1, GoodBatches(kImage, 3)));
  MPC_ASSERT_OK(skipped.model->Train(1, Batches({WithBadValue(MakeBatch(kImage, 8, 9), kInfinity)})));
  EXPECT_EQ(skipped.model->skipped_steps(), 1);
  EXPECT_EQ(skipped.model->loss_scale(), 128);
  EXPECT_EQ(Differences(WithoutScaler(StateOf(*control.model)), WithoutScaler(StateOf(*skipped.model))),
            std::vector<std::string>{});
}

// AMP-17 with the overflow between good batches: dropout and statistics go on as if nothing had been.
TEST_P(SkippedStepAtLevel, AMP_17_OverflowInEveryPosition) {
  Training<ConvNorm> control(GetParam(), fixed_);
  MPC_ASSERT_OK(control.model->Train(1, GoodBatches(kImage, 3)));
  const Snapshot expected = WithoutScaler(StateOf(*control.model));
  for (std::int64_t position = 0; position < 3; ++position) {
    std::vector<data::Row> batches;
    for (std::int64_t i = 0; i < 3; ++i) {
      if (i == position) batches.push_back(WithBadValue(MakeBatch(kImage, 8, 9), kInfinity));
      batches.push_back(MakeBatch(kImage, 8, i));
    }
    Training<ConvNorm> skipped(GetParam(), fixed_);
    MPC_ASSERT_OK(skipped.model->Train(1, Batches(batches)));
    EXPECT_EQ(skipped.model->skipped_steps(), 1);
    EXPECT_EQ(Differences(expected, WithoutScaler(StateOf(*skipped.model))), std::vector<std::string>{}) << position;
  }
}

// AMP-18 and AMP-36: parameters, slots, statistics, step counter, learning rate, generator.
TEST_P(SkippedStepAtLevel, AMP_18_NanBatchLeavesStateBitUnchanged) {
  Training<ConvNorm> training(GetParam(), dynamic_);
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kImage, 2)));
  const Snapshot before = StateOf(*training.model);
  MPC_ASSERT_OK(training.model->Train(1, Batches({WithBadValue(MakeBatch(kImage, 8, 3), kNan)})));
  const std::vector<std::string> changed = Differences(before, StateOf(*training.model));
  for (const std::string& name : changed) EXPECT_EQ(name.rfind("scaler.", 0), 0u) << name;
  EXPECT_EQ(training.model->skipped_steps(), 1);
  EXPECT_EQ(training.model->global_step(), 3);
}

TEST_P(SkippedStepAtLevel, AMP_36_CountersAndGeneratorHoldStillOnASkippedStep) {
  Training<ConvNorm> training(GetParam(), fixed_);
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kImage, 2)));
  EXPECT_EQ(StateItem(*training.model, "optimizer.step"), 2);
  EXPECT_EQ(StateItem(*training.model, "rng.step"), 2);
  MPC_ASSERT_OK(training.model->Train(1, Batches({WithBadValue(MakeBatch(kImage, 8, 3), kNan)})));
  EXPECT_EQ(StateItem(*training.model, "optimizer.step"), 2);
  EXPECT_EQ(StateItem(*training.model, "rng.step"), 2);
  EXPECT_EQ(StateItem(*training.model, "optimizer.learning_rate"), 0.05f);
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kImage, 1)));
  EXPECT_EQ(StateItem(*training.model, "optimizer.step"), 3);
  EXPECT_EQ(StateItem(*training.model, "rng.step"), 3);
}

// AMP-22: what the next step and Predict compute with is the master, rounded.
TEST_P(SkippedStepAtLevel, AMP_22_LowCopyIsTheRoundedMasterThroughSkips) {
  if (GetParam().level == "auto") GTEST_SKIP() << "the device decides which parameters have a low copy: shadow_test";
  const DType low_type = GetParam().dtype.value_or(DType::kF32);
  const Shape features = {6};
  Training<TwoLayers> training(GetParam(), dynamic_);
  Training<TwoLayers> rounded(GetParam(), dynamic_);
  const Tensor probe = Values({4, 6}, 55);
  for (std::int64_t step = 0; step < 6; ++step) {
    data::Row batch = MakeBatch(features, 8, step);
    if (step % 3 == 2) batch = WithBadValue(batch, kInfinity);
    MPC_ASSERT_OK(training.model->Train(1, Batches({batch})));
    bool rounding_matters = false;
    for (const auto& [name, parameter] : training.network->ParametersAndNames()) {
      const Tensor master = *parameter.Value();
      const Tensor low = master.To(low_type).To(DType::kF32);
      rounding_matters |= low.ToFloats() != master.ToFloats();
      MPC_ASSERT_OK(rounded.network->SetParameter(name, low));
    }
    EXPECT_EQ(rounding_matters, low_type != DType::kF32);
    absl::StatusOr<Tensor> of_master = training.model->Predict(probe);
    absl::StatusOr<Tensor> of_rounded = rounded.model->Predict(probe);
    ASSERT_TRUE(of_master.ok() && of_rounded.ok()) << of_master.status() << of_rounded.status();
    EXPECT_EQ(of_master->ToFloats(), of_rounded->ToFloats()) << "after step " << step;
  }
  EXPECT_EQ(training.model->skipped_steps(), 2);
}

INSTANTIATE_TEST_SUITE_P(Levels, SkippedStepAtLevel, ::testing::ValuesIn(AllLevels()), LevelName);

// A label out of range is an error that names it, and its step has changed nothing.
TEST(SkippedStep, LabelOutOfRangeIsAnErrorAndChangesNothing) {
  SetSeed(7);
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::SGD optimizer(network.TrainableParams());
  Model model(network, loss, optimizer, {.amp_level = "O2", .loss_scale_manager = FixedLossScaleManager()});
  const Tensor features = Values({2, 6});
  MPC_ASSERT_OK(model.Train(1, Batches({{features, Tensor::From<std::int32_t>({0, 2}, {2})}})));
  const Snapshot before = StateOf(model);
  const absl::Status above = model.Train(1, Batches({{features, Tensor::From<std::int32_t>({0, 3}, {2})}}));
  EXPECT_EQ(above.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(above.message(), ::testing::HasSubstr("label 3 in row 1 is out of range: there are 3 classes"));
  const absl::Status below = model.Train(1, Batches({{features, Tensor::From<std::int32_t>({-1, 1}, {2})}}));
  EXPECT_EQ(below.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(below.message(), ::testing::HasSubstr("label -1 in row 0 is out of range: there are 3 classes"));
  EXPECT_EQ(Differences(WithoutScaler(before), WithoutScaler(StateOf(model))), std::vector<std::string>{});
}

}  // namespace
}  // namespace mpc::testing
