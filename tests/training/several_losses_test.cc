// Several losses in a step: which optimizers, statistics and scalers an overflow in one of them holds.
#include "tests/training/several_losses.h"

#include <gmock/gmock.h>

namespace mpc::testing {
namespace {

using ::testing::HasSubstr;

/// A level, and whether both losses share one scaler.
struct Setting {
  Level level;
  bool shared = true;
};

std::vector<Setting> Settings() {
  std::vector<Setting> settings;
  for (const Level& level : AllLevels()) {
    for (bool shared : {true, false}) settings.push_back({level, shared});
  }
  return settings;
}

std::string SettingName(const ::testing::TestParamInfo<Setting>& info) {
  return LevelName({info.param.level, 0}) + (info.param.shared ? "_shared" : "_separate");
}

class SeveralLosses : public ::testing::TestWithParam<Setting> {
 protected:
  template <typename Step>
  Model Train(Step& step, double init = 16) {
    return Model(step, {.amp_level = GetParam().level.level,
                        .loss_scale_manager = DynamicScale(init, 2, 0.5, 100),
                        .amp_dtype = GetParam().level.dtype,
                        .amp = {.num_losses = GetParam().shared ? 1 : 2}});
  }

  /// Scales after an overflow in the losses given, from 16.
  void ExpectScales(const Model& model, bool first_overflowed, bool second_overflowed) {
    if (GetParam().shared) {
      EXPECT_EQ(model.loss_scale(), first_overflowed || second_overflowed ? 8 : 16);
      return;
    }
    EXPECT_EQ(model.loss_scale(0), first_overflowed ? 8 : 16);
    EXPECT_EQ(model.loss_scale(1), second_overflowed ? 8 : 16);
  }
};

TEST_P(SeveralLosses, AMP_21_OneOptimizerSkipsWhereEitherLossOverflows) {
  for (int bad : {-1, 0, 1}) {
    OneOptimizerStep step;
    Model model = Train(step);
    MPC_ASSERT_OK(model.Train(1, TwoNumbers(1, 2)));
    EXPECT_EQ(WeightOf(step.first), -1);
    EXPECT_EQ(WeightOf(step.second), -2);
    MPC_ASSERT_OK(model.Train(1, TwoNumbers(bad == 0 ? kInfinity : 1, bad == 1 ? kNan : 2)));
    EXPECT_EQ(WeightOf(step.first), bad < 0 ? -2 : -1) << bad;
    EXPECT_EQ(WeightOf(step.second), bad < 0 ? -4 : -2) << bad;
    EXPECT_EQ(StateItem(model, "optimizer.step"), bad < 0 ? 2 : 1) << bad;
    ExpectScales(model, bad == 0, bad == 1);
  }
}

TEST_P(SeveralLosses, AMP_21_OfTwoOptimizersOnlyThatOfTheBadLossSkips) {
  for (int bad : {-1, 0, 1}) {
    TwoOptimizersStep step;
    Model model = Train(step);
    MPC_ASSERT_OK(model.Train(1, TwoNumbers(1, 2)));
    MPC_ASSERT_OK(model.Train(1, TwoNumbers(bad == 0 ? kInfinity : 1, bad == 1 ? kNan : 2)));
    EXPECT_EQ(WeightOf(step.first), bad == 0 ? -1 : -2) << bad;
    EXPECT_EQ(WeightOf(step.second), bad == 1 ? -2 : -4) << bad;
    EXPECT_EQ(StateItem(model, "optimizer.step"), bad == 0 ? 1 : 2) << bad;
    EXPECT_EQ(StateItem(model, "optimizer2.step"), bad == 1 ? 1 : 2) << bad;
    ExpectScales(model, bad == 0, bad == 1);
    MPC_ASSERT_OK(model.Train(1, TwoNumbers(4, 8)));
    EXPECT_EQ(WeightOf(step.first), bad == 0 ? -5 : -6) << bad;
    EXPECT_EQ(WeightOf(step.second), bad == 1 ? -10 : -12) << bad;
  }
}

// The first optimizer skips: the second loss reads the weight that stayed, and its optimizer goes on.
TEST_P(SeveralLosses, AMP_21_AnOptimizerThatSkipsHoldsNoLaterOne) {
  AlternatingStep step;
  Model model = Train(step);
  MPC_ASSERT_OK(model.Train(1, TwoNumbers(1, 2)));
  EXPECT_EQ(WeightOf(step.first), -1);
  EXPECT_EQ(WeightOf(step.second), 2);
  MPC_ASSERT_OK(model.Train(1, TwoNumbers(kInfinity, 2)));
  EXPECT_EQ(WeightOf(step.first), -1);
  EXPECT_EQ(WeightOf(step.second), 4);
  ExpectScales(model, true, false);
  MPC_ASSERT_OK(model.Train(1, TwoNumbers(1, kNan)));
  EXPECT_EQ(WeightOf(step.first), -2);
  EXPECT_EQ(WeightOf(step.second), 4);
}

// The gradient of the shared model is the sum of unscaled gradients, whatever the scales are; the head's optimizer does
// not care for the first loss.
TEST_P(SeveralLosses, AMP_21_ASharedModelSumsUnscaledGradients) {
  for (int bad : {-1, 0, 1}) {
    SharedModelStep step;
    Model model = Train(step);
    MPC_ASSERT_OK(model.Train(1, TwoNumbers(1, 2)));
    EXPECT_EQ(WeightOf(step.shared), -3);
    EXPECT_EQ(WeightOf(step.head), -2);
    MPC_ASSERT_OK(model.Train(1, TwoNumbers(bad == 0 ? kInfinity : 1, bad == 1 ? kNan : 2)));
    EXPECT_EQ(WeightOf(step.shared), bad < 0 ? -6 : -3) << bad;
    EXPECT_EQ(WeightOf(step.head), bad == 1 ? -2 : -4) << bad;
    ExpectScales(model, bad == 0, bad == 1);
    // The scales differ now; the sum does not see them.
    MPC_ASSERT_OK(model.Train(1, TwoNumbers(1, 2)));
    EXPECT_EQ(WeightOf(step.shared), bad < 0 ? -9 : -6) << bad;
  }
}

// AMP-21 with every kind of state: an overflow in one loss leaves the bits of what belongs to it, statistics included,
// and moves what belongs to the other one. The generator counts, since the other loss used what it drew.
TEST_P(SeveralLosses, AMP_21_StateOfTheBadLossKeepsItsBits) {
  const Shape image = {8, 2, 6, 6};
  for (int bad : {0, 1}) {
    SetSeed(7);
    TwoNetworksStep step;
    Model model = Train(step);
    MPC_ASSERT_OK(model.Train(1, TwoColumns(Values(image, 1), Values(image, 2))));
    const Snapshot before = StateOf(model);
    std::vector<data::Row> rows = {{Values(image, 3)}, {Values(image, 4)}};
    rows[bad] = WithBadValue(rows[bad], kInfinity);
    MPC_ASSERT_OK(model.Train(1, TwoColumns(rows[0][0], rows[1][0])));
    const std::vector<std::string> changed = Differences(before, StateOf(model));
    const std::string held = bad == 0 ? "first." : "second.";
    const std::string held_optimizer = bad == 0 ? "optimizer." : "optimizer2.";
    int moved = 0;
    for (const std::string& name : changed) {
      EXPECT_NE(name.rfind(held, 0), 0u) << name;
      EXPECT_NE(name.rfind(held_optimizer, 0), 0u) << name;
      moved += name.find("moving") != std::string::npos || name.find("mean") != std::string::npos;
    }
    EXPECT_GT(moved, 0) << "the statistics of the good loss move";
    EXPECT_EQ(StateItem(model, "rng.step"), 2);
    // No loss is finite: nothing moves, the generator neither.
    const Snapshot between = StateOf(model);
    rows[1 - bad] = WithBadValue(rows[1 - bad], kNan);
    MPC_ASSERT_OK(model.Train(1, TwoColumns(rows[0][0], rows[1][0])));
    for (const std::string& name : Differences(between, StateOf(model))) EXPECT_EQ(name.rfind("scaler", 0), 0u) << name;
  }
}

TEST_P(SeveralLosses, AMP_27_OverflowsBackTheScaleOfTheirLossOff) {
  TwoOptimizersStep step;
  Model model = Train(step, 1024);
  for (int i = 0; i < 3; ++i) MPC_ASSERT_OK(model.Train(1, TwoNumbers(1, kInfinity)));
  const std::string second = GetParam().shared ? "scaler" : "scaler1";
  EXPECT_EQ(StateItem(model, second + ".scale"), 128);
  EXPECT_EQ(StateItem(model, second + ".good"), 0);
  EXPECT_EQ(StateItem(model, second + ".skipped"), 3);
  EXPECT_EQ(model.skipped_steps(), 3);
  if (GetParam().shared) return;
  EXPECT_EQ(StateItem(model, "scaler0.scale"), 1024);
  EXPECT_EQ(StateItem(model, "scaler0.good"), 3);
  EXPECT_EQ(StateItem(model, "scaler0.skipped"), 0);
}

TEST_P(SeveralLosses, MessageNamesTheGradientAndItsLoss) {
  TwoOptimizersStep step;
  Model model = Train(step);
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(model.Train(1, TwoNumbers(1, kInfinity)));
  const std::string message = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(message, HasSubstr("the gradient of second.weight is not finite"));
  EXPECT_THAT(message, HasSubstr(GetParam().shared ? "loss scale 16 -> 8" : "loss scale of loss 1 16 -> 8"));
}

INSTANTIATE_TEST_SUITE_P(Settings, SeveralLosses, ::testing::ValuesIn(Settings()), SettingName);

class LossIdStep : public nn::TrainingStep {
 public:
  MPC_CELL(LossIdStep, network)
  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss = reduce_sum(network(x)) + reduce_sum(y);
    return ops::Depend(loss, optimizer(ops::Backward(loss, {network.weight}, {}, 1)));
  }
  Probe network;
  nn::SGD optimizer{network.TrainableParams()};
};

TEST(SeveralLosses, LossIdBeyondTheScalersIsAnError) {
  LossIdStep step;
  Model model(step, {.amp_level = "O0", .loss_scale_manager = DynamicScale(16, 2, 0.5, 100)});
  const absl::Status status = model.Train(1, TwoNumbers(1, 2));
  EXPECT_THAT(std::string(status.message()), HasSubstr("loss_id 1 has no scaler: num_losses is 1"));
}

TEST(SeveralLosses, AModelOfOneLossTakesOneScaler) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams());
  const Model model(network, loss, optimizer, {.amp = {.num_losses = 2}});
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("num_losses = 2 given to a Model that trains one loss"));
}

// AMP-23: what the graph check says to a user.
class ClipsScaledStep : public nn::TrainingStep {
 public:
  MPC_CELL(ClipsScaledStep, network)
  Tensor Construct(Tensor x) {
    const Tensor loss = reduce_sum(network(x));
    const std::vector<Tensor> gradients = ops::Backward(scaler.Scale(loss), optimizer.parameters());
    const std::vector<Tensor> clipped = ops::ClipByGlobalNorm(gradients, 1.0).gradients;
    return ops::Depend(loss, scaler.Step(optimizer, clipped) && scaler.Update());
  }
  Probe network;
  nn::SGD optimizer{network.TrainableParams()};
  amp::GradScaler scaler{{.init_scale = 16}};
};

TEST(SeveralLosses, AMP_23_ClippingScaledGradientsIsAnError) {
  ClipsScaledStep step;
  const absl::Status status = step(Tensor::Full({1}, 1)).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("while it is scaled by 'scaler.scale'"));
}

// What the check of one loss has found has no place among the checks of two.
TEST(SeveralLosses, BatchesOfAnAccumulatedStepHaveTheSameLosses) {
  const auto train = [](const std::vector<std::vector<float>>& batches) {
    LossesByRows step;
    Model model(step, {.loss_scale_manager = DynamicScale(16, 2, 0.5, 100), .accumulation_steps = 2});
    std::vector<data::Row> rows;
    for (const std::vector<float>& batch : batches) {
      rows.push_back({Tensor::From(batch, {static_cast<std::int64_t>(batch.size())})});
    }
    const absl::Status status = model.Train(1, data::GeneratorDataset(rows, {"x"}));
    EXPECT_EQ(model.skipped_steps(), 0) << "every gradient is finite";
    return std::pair(std::string(status.message()), WeightOf(step.first));
  };
  EXPECT_EQ(train({{2}, {4}, {1, 2}, {2, 3}}), std::pair(std::string(), -3.0f - 4.0f));
  EXPECT_THAT(train({{2}, {1, 2}}).first,
              HasSubstr("training step 1 (epoch 1 step 2): batch 2 of 2 of the step has 2 losses (first_bad0, "
                        "first_bad1), and those before it have 1 loss (first_bad); what was found in the losses of a "
                        "step cannot go on in others: let the step have the same losses on all batches that it "
                        "accumulates"));
  EXPECT_THAT(train({{1, 2}, {2}}).first,
              HasSubstr("has 1 loss (first_bad), and those before it have 2 losses (first_bad0, first_bad1)"));
}

}  // namespace
}  // namespace mpc::testing
