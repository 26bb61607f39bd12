// Accumulation over micro-steps: the mean of their gradients, one update, one decision.
#include <gmock/gmock.h>

#include <cmath>

#include "frontend/state/checkpoint_fit.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/several_losses.h"

namespace mpc::testing {
namespace {

const Shape kImage = {2, 6, 6};

/// Mean of the predictions; the label is not used, but read.
class MeanLoss : public nn::LossBase {
 public:
  MPC_CELL(MeanLoss)
  Tensor Construct(Tensor prediction, Tensor zero) { return reduce_mean(prediction) + reduce_sum(zero); }
};

/// A Probe of two weights under MeanLoss, SGD at rate 1.
struct MeanTraining {
  MeanTraining(const Level& level, LossScaleChoice scale, std::int64_t accumulation_steps,
               std::optional<double> clip_global_norm = {})
      : model(network, loss, optimizer,
              {.amp_level = level.level,
               .loss_scale_manager = scale,
               .amp_dtype = level.dtype,
               .accumulation_steps = accumulation_steps,
               .clip_global_norm = clip_global_norm}) {}

  absl::Status Run(const std::vector<std::vector<float>>& batches) {
    std::vector<data::Row> rows;
    for (const std::vector<float>& batch : batches) {
      rows.push_back({Tensor::From(batch, {static_cast<std::int64_t>(batch.size()) / 2, 2}), Tensor::Full({1}, 0.0)});
    }
    return model.Train(1, Batches(std::move(rows)));
  }
  std::vector<float> Weight() const { return network.weight.Value()->ToFloats(); }

  Probe network{2};
  MeanLoss loss;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0}};
  Model model;
};

class Accumulation : public ::testing::TestWithParam<Level> {
 protected:
  template <typename Network>
  Training<Network> Make(LossScaleChoice scale, std::int64_t accumulation_steps) {
    return Training<Network>(GetParam(), scale, {.learning_rate = 0.05}, {}, accumulation_steps);
  }
  const LossScaleConfig scale_ = DynamicScale(16, 2, 0.5, 100);
  // Another scale could make other f16 subnormals.
  const FixedLossScaleManager fixed_{{.loss_scale = 64}};
};

// AMP-24: numbers whose sums and quotients are exact, so that the two ways round nowhere.
TEST_P(Accumulation, AMP_24_TwoMicroStepsEqualTheLargeBatch) {
  const std::vector<float> first = {1, 2, 3, 4}, second = {-5, 6, 7, -16};
  MeanTraining small(GetParam(), scale_, 2), large(GetParam(), scale_, 1);
  MPC_ASSERT_OK(large.Run({{1, 2, 3, 4, -5, 6, 7, -16}}));
  MPC_ASSERT_OK(small.Run({first}));
  EXPECT_EQ(small.Weight(), std::vector<float>({0, 0})) << "the first micro-step updates nothing";
  EXPECT_EQ(small.model.global_step(), 0);
  MPC_ASSERT_OK(small.Run({second}));
  EXPECT_EQ(small.Weight(), large.Weight());
  EXPECT_EQ(small.Weight(), std::vector<float>({-0.75f, 0.5f}));
  EXPECT_EQ(small.model.global_step(), 1);
  EXPECT_EQ(StateItem(small.model, "optimizer.step"), 1);
  EXPECT_EQ(StateItem(small.model, "scaler.good"), 1);
}

// Clipping acts on the mean: equal means, equal bits.
TEST_P(Accumulation, AMP_24_ClippingActsOnTheAccumulatedGradient) {
  MeanTraining small(GetParam(), scale_, 2, 0.25), large(GetParam(), scale_, 1, 0.25);
  MPC_ASSERT_OK(large.Run({{1, 2, 3, 4, -5, 6, 7, -16}}));
  MPC_ASSERT_OK(small.Run({{1, 2, 3, 4}, {-5, 6, 7, -16}}));
  EXPECT_EQ(small.Weight(), large.Weight());
  EXPECT_LT(std::hypot(small.Weight()[0], small.Weight()[1]), 0.26);
}

// The squares of these gradients overflow f32: 2^65 and 2^66 in means of one element each.
TEST_P(Accumulation, AMP_24_ALargeMeanIsClippedAndSkipsNothing) {
  MeanTraining training(GetParam(), DynamicScale(1, 2, 0.5, 100), 2, 1.0);
  const bool is_f16 = GetParam().dtype == DType::kF16 && GetParam().level != "O0";
  const float large = is_f16 ? 0x1p14f : 0x1p66f;
  MPC_ASSERT_OK(training.Run({{large, 0}, {2 * large, 0}}));
  EXPECT_NEAR(training.Weight()[0], -1, 1e-3);
  EXPECT_EQ(training.Weight()[1], 0);
  EXPECT_EQ(training.model.skipped_steps(), 0);
}

// A checkpoint between two micro-steps: what has been accumulated is part of it.
TEST_P(Accumulation, ResumesBetweenMicroSteps) {
  const std::string path =
      ::testing::TempDir() + "accumulation_" + GetParam().level + (GetParam().dtype == DType::kBF16 ? "b" : "");
  MeanTraining saved(GetParam(), scale_, 2), resumed(GetParam(), scale_, 2);
  MPC_ASSERT_OK(saved.Run({{1, 2, 3, 4}}));
  MPC_ASSERT_OK(saved.model.SaveCheckpoint(path));
  const auto report = resumed.model.LoadCheckpoint(path, {.continue_run = false});
  ASSERT_TRUE(report.ok()) << report.status();
  MPC_ASSERT_OK(resumed.Run({{-5, 6, 7, -16}}));
  EXPECT_EQ(resumed.Weight(), std::vector<float>({-0.75f, 0.5f}));
  EXPECT_EQ(resumed.model.global_step(), 1);
}

// Thirds are rounded: 1/3 of each of three terms, two sums; in the large batch 1/12 (f32, or the low type where the
// gradient is low), six products and five sums.
TEST_P(Accumulation, AMP_24_ThreeMicroStepsEqualTheLargeBatch) {
  MeanTraining small(GetParam(), scale_, 3), large(GetParam(), scale_, 1);
  MPC_ASSERT_OK(small.Run({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}}));
  MPC_ASSERT_OK(large.Run({{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}));
  const DType low = GetParam().dtype.value_or(DType::kF32);
  const double unit = low == DType::kF32 ? 0x1p-24 : low == DType::kF16 ? 0x1p-11 : 0x1p-8;
  for (std::size_t i = 0; i < 2; ++i) {
    const double exact = i == 0 ? -36.0 / 12 : -42.0 / 12;
    EXPECT_NEAR(small.Weight()[i], exact, 17 * unit * std::abs(exact)) << i;
    EXPECT_NEAR(large.Weight()[i], exact, 17 * unit * std::abs(exact)) << i;
  }
}

// What is left over at an epoch's end goes on in the next epoch, and in the next call; the call says what it keeps.
TEST_P(Accumulation, BatchesLeftOverAreKeptAndReported) {
  MeanTraining parts(GetParam(), scale_, 2), whole(GetParam(), scale_, 2);
  const std::vector<std::vector<float>> three = {{1, 2, 3, 4}, {-5, 6, 7, -16}, {9, 10, 11, 12}};
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(parts.Run(three));
  EXPECT_THAT(
      ::testing::internal::GetCapturedStderr(),
      ::testing::HasSubstr("remark: the last 1 of 2 batches of a step have no step yet: their gradients are kept "
                           "for the next call of Train\n"));
  EXPECT_EQ(parts.model.global_step(), 1);
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(parts.Run(three));
  EXPECT_EQ(::testing::internal::GetCapturedStderr().find("have no step yet"), std::string::npos);
  EXPECT_EQ(parts.model.global_step(), 3);
  std::vector<std::vector<float>> six = three;
  six.insert(six.end(), three.begin(), three.end());
  MPC_ASSERT_OK(whole.Run(six));
  EXPECT_EQ(parts.Weight(), whole.Weight());
}

/// x -> (kept + frozen) * x.
class TwoFactors : public nn::Cell {
 public:
  MPC_CELL(TwoFactors, kept, frozen)
  Tensor Construct(Tensor x) { return kept * x + frozen * x; }
  Parameter kept{{1}, Constant(0.0)}, frozen{{1}, Constant(0.0)};
};

// A gradient from before an update whose parameter was frozen at its end is no part of the next one.
TEST_P(Accumulation, AFrozenParametersGradientEndsWithItsUpdate) {
  for (const std::int64_t micro_steps : {3, 4}) {
    TwoFactors network;
    SumLoss loss;
    nn::SGD optimizer(network.TrainableParams(), {.learning_rate = static_cast<double>(micro_steps)});
    Model model(network, loss, optimizer,
                {.amp_level = GetParam().level,
                 .loss_scale_manager = fixed_,
                 .amp_dtype = GetParam().dtype,
                 .accumulation_steps = micro_steps});
    const auto train = [&](const std::vector<float>& gradients) {
      std::vector<data::Row> rows;
      for (const float x : gradients) rows.push_back({Tensor::Full({1}, x), Tensor::Full({1}, 0.0)});
      MPC_EXPECT_OK(model.Train(1, Batches(std::move(rows))));
    };
    const auto weight = [](const Parameter& parameter) { return parameter.Value()->ToFloats()[0]; };
    train({8});
    MPC_ASSERT_OK(network.SetRequiresGrad("frozen", false));
    train(std::vector<float>(micro_steps - 1, 16));
    EXPECT_NEAR(weight(network.kept), -8 - 16 * static_cast<float>(micro_steps - 1), 1e-4);
    train({32});
    MPC_ASSERT_OK(network.SetRequiresGrad("frozen", true));
    train(std::vector<float>(micro_steps - 1, 64));
    EXPECT_NEAR(weight(network.frozen), -64 * static_cast<float>(micro_steps - 1), 1e-4);
    // Frozen and unfrozen within one update it keeps what it has, once.
    const float before = weight(network.frozen);
    train(std::vector<float>(micro_steps - 2, 1));
    MPC_ASSERT_OK(network.SetRequiresGrad("frozen", false));
    train({2});
    MPC_ASSERT_OK(network.SetRequiresGrad("frozen", true));
    train({4});
    EXPECT_NEAR(weight(network.frozen), before - static_cast<float>(micro_steps - 2) - 4, 1e-4);
  }
}

TEST_P(Accumulation, ALossThatIsNotFiniteIsReportedWithItsMicroStep) {
  const float nan = std::nanf("");
  for (const std::size_t bad : {0, 1}) {
    std::vector<std::vector<float>> batches = {{4, 8}, {12, -8}};
    batches[bad][0] = nan;
    MeanTraining training(GetParam(), nullptr, 2);
    ::testing::internal::CaptureStderr();
    MPC_ASSERT_OK(training.Run(batches));
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "warning: epoch 1 step " + std::to_string(bad + 1) +
                  ": the loss is nan and no scaler skips the step; parameters may be lost\n");
    // With a scaler the last micro-step reports the overflow of the update, and nothing else does.
    MeanTraining scaled(GetParam(), scale_, 2);
    ::testing::internal::CaptureStderr();
    MPC_ASSERT_OK(scaled.Run(batches));
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, ::testing::HasSubstr("overflow at epoch 1 step 2: "));
    EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("warning")));
  }
}

TEST_P(Accumulation, WithoutAScalerOnlyTheUpdateWaits) {
  MeanTraining training(GetParam(), nullptr, 2);
  MPC_ASSERT_OK(training.Run({{4, 8}, {12, -8}, {4, 8}}));
  EXPECT_EQ(training.Weight(), std::vector<float>({-4, 0}));
  EXPECT_EQ(StateItem(training.model, "accumulator.micro_step"), 1);
}

// AMP-24: an overflow in any micro-step is as if the whole step had not been: parameters, slots, statistics, dropout.
TEST_P(Accumulation, AMP_24_OverflowInAnyPositionSkipsTheStep) {
  for (std::int64_t steps : {2, 3}) {
    Training<ConvNorm> control = Make<ConvNorm>(fixed_, steps);
    MPC_ASSERT_OK(control.model->Train(1, GoodBatches(kImage, 2 * steps)));
    const auto without_own = [](Snapshot state) {
      std::erase_if(state, [](const auto& entry) { return entry.first.rfind("accumulator.", 0) == 0; });
      return WithoutScaler(std::move(state));
    };
    const Snapshot expected = without_own(StateOf(*control.model));
    for (std::int64_t position = 0; position < steps; ++position) {
      std::vector<data::Row> batches;
      for (std::int64_t i = 0; i < steps; ++i) batches.push_back(MakeBatch(kImage, 8, i));
      for (std::int64_t i = 0; i < steps; ++i) {
        data::Row batch = MakeBatch(kImage, 8, 20 + i);
        batches.push_back(i == position ? WithBadValue(batch, kInfinity) : batch);
      }
      for (std::int64_t i = steps; i < 2 * steps; ++i) batches.push_back(MakeBatch(kImage, 8, i));
      Training<ConvNorm> skipped = Make<ConvNorm>(fixed_, steps);
      MPC_ASSERT_OK(skipped.model->Train(1, Batches(batches)));
      EXPECT_EQ(skipped.model->skipped_steps(), 1);
      EXPECT_EQ(skipped.model->global_step(), 3);
      EXPECT_EQ(Differences(expected, without_own(StateOf(*skipped.model))), std::vector<std::string>{})
          << steps << " " << position;
    }
  }
}

TEST_P(Accumulation, OneSkippedStepIsOneBackoff) {
  MeanTraining training(GetParam(), scale_, 3);
  MPC_ASSERT_OK(training.Run({{kInfinity, 1}, {1, kNan}, {4, 8}}));
  EXPECT_EQ(training.Weight(), std::vector<float>({0, 0}));
  EXPECT_EQ(training.model.loss_scale(), 8);
  EXPECT_EQ(training.model.skipped_steps(), 1);
  MPC_ASSERT_OK(training.Run({{6, 12}, {6, 12}, {6, 12}}));
  EXPECT_EQ(StateItem(training.model, "scaler.good"), 1);
  EXPECT_EQ(StateItem(training.model, "optimizer.step"), 1);
}

// An overflow in one loss, in one micro-step, holds the optimizer of that loss only.
TEST_P(Accumulation, LossesAreDecidedOneByOne) {
  TwoOptimizersStep step;
  Model model(step, {.amp_level = GetParam().level,
                     .loss_scale_manager = scale_,
                     .amp_dtype = GetParam().dtype,
                     .amp = {.num_losses = 2},
                     .accumulation_steps = 2});
  MPC_ASSERT_OK(model.Train(1, TwoNumbers(kInfinity, 2)));
  MPC_ASSERT_OK(model.Train(1, TwoNumbers(1, 6)));
  EXPECT_EQ(WeightOf(step.first), 0);
  EXPECT_EQ(WeightOf(step.second), -4);
  EXPECT_EQ(model.loss_scale(0), 8);
  EXPECT_EQ(model.loss_scale(1), 16);
  MPC_ASSERT_OK(model.Train(1, TwoNumbers(2, 2)));
  MPC_ASSERT_OK(model.Train(1, TwoNumbers(4, 4)));
  EXPECT_EQ(WeightOf(step.first), -3);
  EXPECT_EQ(WeightOf(step.second), -7);
}

INSTANTIATE_TEST_SUITE_P(Levels, Accumulation, ::testing::ValuesIn(AllLevels()), LevelName);

TEST(Accumulation, CountsAtLeastOneMicroStep) {
  const MeanTraining training({"O0", {}}, nullptr, 0);
  EXPECT_EQ(training.model.status().message(), "accumulation_steps must be at least 1 and at most 1048576, got 0");
  const MeanTraining beyond({"O0", {}}, nullptr, (std::int64_t{1} << 32) + 2);
  EXPECT_EQ(beyond.model.status().message(),
            "accumulation_steps must be at least 1 and at most 1048576, got 4294967298");
}

const std::vector<float> kFirst = {1, 2, 3, 4}, kSecond = {-5, 6, 7, -16};

// What a step with a scaler needs of an update that it may skip is not in the file of one without.
TEST(Accumulation, AScalerOnOneSideDropsWhatWasGathered) {
  const TemporaryFolder folder;
  MeanTraining without({"O0", {}}, nullptr, 2);
  MPC_ASSERT_OK(without.Run({kFirst}));
  MPC_ASSERT_OK(without.model.SaveCheckpoint(folder / "x"));
  MeanTraining with({"O0", {}}, DynamicScale(16, 2, 0.5, 100), 2);
  const absl::StatusOr<ResumeReport> report = with.model.LoadCheckpoint(folder / "x", {.continue_run = false});
  MPC_ASSERT_OK(report.status());
  EXPECT_THAT(report->differences, ::testing::Contains("gradients that have been accumulated are dropped"));
  MPC_ASSERT_OK(with.Run({kFirst, kSecond}));
  EXPECT_EQ(with.Weight(), std::vector<float>({-0.75f, 0.5f}));
  EXPECT_EQ(StateItem(with.model, "scaler.good"), 1) << "nothing was skipped";
}

TEST(Accumulation, AFileOfAnotherAccumulationEndsTheUpdateUnderWay) {
  const TemporaryFolder folder;
  MeanTraining one({"O0", {}}, nullptr, 1);
  MPC_ASSERT_OK(one.model.SaveCheckpoint(folder / "x"));
  MeanTraining two({"O0", {}}, nullptr, 2);
  MPC_ASSERT_OK(two.Run({{100, 100}}));
  MPC_ASSERT_OK(two.model.LoadCheckpoint(folder / "x").status());
  MPC_ASSERT_OK(two.Run({kFirst, kSecond}));
  EXPECT_EQ(two.Weight(), std::vector<float>({-0.75f, 0.5f}));
}

// A Model that has trained has accumulators, and a file from before the first step has none.
TEST(Accumulation, ATrainedModelLoadsAFileFromBeforeItsFirstStep) {
  const TemporaryFolder folder;
  for (const bool has_scaler : {false, true}) {
    MeanTraining training({"O0", {}}, has_scaler ? LossScaleChoice(DynamicScale(16, 2, 0.5, 100)) : nullptr, 2);
    MPC_ASSERT_OK(training.model.SaveCheckpoint(folder / "x"));
    MPC_ASSERT_OK(training.Run({{8, 8}, {8, 8}, {kInfinity, 100}}));
    const absl::StatusOr<ResumeReport> report = training.model.LoadCheckpoint(folder / "x", {.continue_run = false});
    MPC_ASSERT_OK(report.status());
    EXPECT_THAT(report->differences, ::testing::IsEmpty());
    MPC_ASSERT_OK(training.Run({kFirst, kSecond}));
    EXPECT_EQ(training.Weight(), std::vector<float>({-0.75f, 0.5f}));
    EXPECT_EQ(training.model.global_step(), 1);
    EXPECT_EQ(training.model.skipped_steps(), 0);
  }
}

/// TwoFactors under SGD at rate 4, four batches a step.
struct FourBatches {
  absl::Status Run(const std::vector<float>& gradients) {
    std::vector<data::Row> rows;
    for (const float x : gradients) rows.push_back({Tensor::Full({1}, x), Tensor::Full({1}, 0.0)});
    return model.Train(1, Batches(std::move(rows)));
  }
  float Kept() const { return network.kept.Value()->ToFloats()[0]; }
  float Frozen() const { return network.frozen.Value()->ToFloats()[0]; }

  TwoFactors network;
  SumLoss loss;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 4}};
  Model model{network, loss, optimizer, {.loss_scale_manager = nullptr, .accumulation_steps = 4}};
};

// A batch in which a Parameter was frozen gave it no gradient: its accumulator, which the file lacks, is zero.
TEST(Accumulation, AFileOfAFrozenParameterIsLoadedWhereItIsTrained) {
  const TemporaryFolder folder;
  for (const std::size_t batches : {4, 3}) {
    FourBatches saved, trained, fresh;
    MPC_ASSERT_OK(saved.network.SetRequiresGrad("frozen", false));
    MPC_ASSERT_OK(saved.Run(std::vector<float>(batches, 8)));
    MPC_ASSERT_OK(saved.model.SaveCheckpoint(folder / "x"));
    MPC_ASSERT_OK(trained.Run({100, 100, 100, 100, 100, 100}));
    MPC_ASSERT_OK(saved.network.SetRequiresGrad("frozen", true));
    for (FourBatches* each : {&trained, &fresh}) {
      const absl::StatusOr<ResumeReport> report = each->model.LoadCheckpoint(folder / "x", {.continue_run = false});
      MPC_ASSERT_OK(report.status());
      EXPECT_THAT(report->differences, ::testing::IsEmpty());
    }
    for (FourBatches* each : {&saved, &trained, &fresh}) {
      MPC_ASSERT_OK(each->Run(std::vector<float>(batches == 4 ? 4 : 1, 2)));
      EXPECT_EQ(each->Kept(), batches == 4 ? -32 - 8 : -24 - 2);
      EXPECT_EQ(each->Frozen(), batches == 4 ? -8 : -2);
    }
  }
}

// What a statistic was before the update cannot be told from inside it.
TEST(Accumulation, AFileFromInsideAnUpdateWithoutAStatisticsStartBeginsAnUpdate) {
  const auto accumulator = [](const std::string& name, float value) {
    Parameter entry(Tensor::Full({1}, value), {.requires_grad = false, .role = Role::kAccumulator});
    entry.set_name(name);
    return entry;
  };
  const std::vector<Parameter> state = {accumulator("accumulator.micro_step", 0), accumulator("accumulator.w", 5),
                                        accumulator("accumulator.old.mean", 5)};
  for (const float micro_step : {0.0f, 1.0f}) {
    const Safetensors content{{{"accumulator.micro_step", Tensor::Full({1}, micro_step)},
                               {"accumulator.w", Tensor::Full({1}, 7.0)},
                               {"accumulator.v", Tensor::Full({1}, 7.0)}},
                              {}};
    const internal::CheckpointFit fit =
        internal::FitCheckpoint(state, content, {{"accumulator.v", Role::kAccumulator}}, {});
    EXPECT_THAT(fit.problems, ::testing::IsEmpty());
    const bool drops = micro_step != 0;
    EXPECT_EQ(fit.accumulators.size(), drops ? 0 : 1);
    EXPECT_EQ(fit.differences.size(), drops ? 1 : 0);
    ASSERT_EQ(fit.assignments.size(), 3);
    EXPECT_EQ(fit.assignments[0].second.Item<float>(), 0);
    EXPECT_EQ(fit.assignments[1].second.Item<float>(), drops ? 0 : 7);
    EXPECT_EQ(fit.assignments[2].second.Item<float>(), 0);
  }
}

std::vector<data::Row> UpdateWithBadBatch(std::size_t bad, float value) {
  std::vector<data::Row> rows;
  for (std::size_t i = 0; i < 4; ++i) {
    rows.push_back({Tensor::From({i == bad ? value : 2.0f, 3.0f}, {1, 2}), Tensor::Full({1}, 0.0)});
  }
  return rows;
}

// The infinity is seen in the batch that has it, wherever in the update it stands.
TEST(Accumulation, DiagnosisNamesTheBatchThatIsBad) {
  for (const std::size_t bad : {0, 2, 3}) {
    Probe network{2};
    MeanLoss loss;
    nn::SGD optimizer(network.TrainableParams());
    Model model(
        network, loss, optimizer,
        {.loss_scale_manager = DynamicScale(16, 2, 0.5, 100), .accumulation_steps = 4, .diagnose_overflow = true});
    ::testing::internal::CaptureStderr();
    MPC_ASSERT_OK(model.Train(1, Batches(UpdateWithBadBatch(bad, kInfinity))));
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, ::testing::HasSubstr("\nbatch " + std::to_string(bad + 1) +
                                           " of 4 of the step is the first bad one\n"
                                           "first value that is not finite at loss scale 16: input"));
    EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("replayed")));
    EXPECT_EQ(model.loss_scale(), 8) << "the replay moves no state";
    EXPECT_EQ(StateItem(model, "rng.step"), 0);
  }
}

// Batches that were not kept are not said to be finite.
TEST(Accumulation, DiagnosisSaysWhichBatchesItHas) {
  for (const std::int64_t skips : {1, 2}) {
    Probe network{2};
    MeanLoss loss;
    nn::SGD optimizer(network.TrainableParams());
    Model model(network, loss, optimizer,
                {.loss_scale_manager = FixedLossScaleManager({.loss_scale = 64}),
                 .accumulation_steps = 4,
                 .max_consecutive_skips = skips});
    std::vector<data::Row> rows = UpdateWithBadBatch(1, kNan);
    for (const data::Row& row : UpdateWithBadBatch(1, kNan)) {
      if (skips == 2) rows.push_back(row);
    }
    ::testing::internal::CaptureStderr();
    const std::string said(model.Train(1, Batches(std::move(rows))).message());
    ::testing::internal::GetCapturedStderr();
    if (skips == 1) {
      EXPECT_THAT(said,
                  ::testing::HasSubstr("\nreplayed: the last 1 of 4 batches of the step; those before them were not "
                                       "kept\nno batch that was replayed is bad; of the last one:\n"));
    } else {
      // In a run of overflows all are kept.
      EXPECT_THAT(said, ::testing::HasSubstr("\nbatch 2 of 4 of the step is the first bad one\nfirst value "));
    }
  }
}

/// What each batch's context tells.
class ContextRecorder : public Callback {
 public:
  void OnTrainBegin(RunContext& context) override { Add(context); }
  void OnStepEnd(RunContext& context) override { Add(context); }
  std::vector<double> scales, skipped, norms, losses;

 private:
  void Add(const RunContext& context) {
    scales.push_back(context.loss_scale);
    skipped.push_back(static_cast<double>(context.skipped_steps));
    norms.push_back(context.gradient_norm.value_or(-1));
    losses.push_back(context.loss());
  }
};

TEST(Accumulation, BetweenUpdatesTheContextTellsTheLastOne) {
  using ::testing::ElementsAre;
  Probe network{1};
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1});
  Model model(
      network, loss, optimizer,
      {.loss_scale_manager = DynamicScale(16, 2, 0.5, 100), .accumulation_steps = 2, .record_gradient_norm = true});
  const auto train = [&](const std::vector<float>& gradients) {
    std::vector<data::Row> rows;
    for (const float x : gradients) rows.push_back({Tensor::Full({1}, x), Tensor::Full({1}, 0.0)});
    ContextRecorder recorder;
    MPC_EXPECT_OK(model.Train(1, Batches(std::move(rows)), {recorder}));
    return recorder;
  };
  const ContextRecorder first = train({2, 4, kInfinity, 4, 6});
  EXPECT_THAT(first.scales, ElementsAre(16, 16, 16, 16, 8, 8));
  EXPECT_THAT(first.skipped, ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(std::vector<double>(first.norms.begin(), first.norms.begin() + 4), ElementsAre(-1, -1, 3, 3));
  EXPECT_EQ(first.norms[5], first.norms[4]);
  EXPECT_EQ(first.losses[2], 0) << "before the first step the weight is zero";
  EXPECT_EQ(first.losses[4], 4 * -3) << "the loss is the last batch's";
  const ContextRecorder second = train({10, 2});
  EXPECT_THAT(second.scales, ElementsAre(8, 8, 8));
  EXPECT_THAT(second.skipped, ElementsAre(1, 1, 1));
  EXPECT_THAT(second.norms, ElementsAre(-1, 8, 8));
}

}  // namespace
}  // namespace mpc::testing
