// What an update of several micro-steps counts and keeps: its steps, and statistics from before it. And where it is not
// that of the large batch.
#include <gmock/gmock.h>

#include <cmath>

#include "frontend/state/checkpoint_fit.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/several_losses.h"

namespace mpc::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;

data::Dataset Ones(std::size_t count) {
  return Batches(std::vector<data::Row>(count, {Tensor::Full({1}, 1.0), Tensor::Full({1}, 0.0)}));
}

// No gradient says when it acts.
TEST(AccumulatedUpdates, AnOptimizerOfFrozenParametersCountsThem) {
  for (const LossScaleChoice& scale : {LossScaleChoice(nullptr), LossScaleChoice(DynamicScale(16, 2, 0.5, 100))}) {
    for (const char* level : {"O0", "O2"}) {
      Probe network;
      SumLoss loss;
      nn::Adam optimizer(network.TrainableParams());
      MPC_ASSERT_OK(network.SetRequiresGrad("", false));
      Model model(network, loss, optimizer, {.amp_level = level, .loss_scale_manager = scale, .accumulation_steps = 2});
      MPC_ASSERT_OK(model.Train(1, Ones(5)));
      EXPECT_EQ(model.global_step(), 2) << level;
      EXPECT_EQ(StateItem(model, "optimizer.step"), 2) << level;
    }
  }
}

TEST(AccumulatedUpdates, AFrozenOptimizerCountsThemBesideOneThatTrains) {
  TwoOptimizersStep step;
  MPC_ASSERT_OK(step.first.SetRequiresGrad("", false));
  Model model(step, {.loss_scale_manager = DynamicScale(16, 2, 0.5, 100), .accumulation_steps = 2});
  for (int batch = 0; batch < 4; ++batch) MPC_ASSERT_OK(model.Train(1, TwoNumbers(1, 2)));
  EXPECT_EQ(WeightOf(step.first), 0);
  EXPECT_EQ(WeightOf(step.second), -4);
  EXPECT_EQ(StateItem(model, "optimizer.step"), 2);
  EXPECT_EQ(StateItem(model, "optimizer2.step"), 2);
}

// A batch in which nothing is trained has the loss of the others, and is a zero of their mean.
TEST(AccumulatedUpdates, EveryParameterMayBeFrozenInABatchOfOne) {
  for (const LossScaleChoice& scale : {LossScaleChoice(nullptr), LossScaleChoice(DynamicScale(16, 2, 0.5, 100))}) {
    for (const std::size_t frozen : {1, 3}) {
      Probe network;
      SumLoss loss;
      nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 4});
      Model model(network, loss, optimizer, {.loss_scale_manager = scale, .accumulation_steps = 4});
      const auto train = [&](std::size_t batches, bool trains) {
        MPC_EXPECT_OK(network.SetRequiresGrad("", trains));
        MPC_EXPECT_OK(model.Train(1, Ones(batches)));
      };
      for (const bool before : {false, true}) {
        if (before) train(4, true);
        const float start = WeightOf(network);
        train(frozen, false);
        train(4 - frozen, true);
        EXPECT_EQ(WeightOf(network), start - static_cast<float>(4 - frozen));
        train(1, true);
        train(frozen, false);
        if (frozen == 1) train(2, true);
        EXPECT_EQ(WeightOf(network), start - static_cast<float>(4 - frozen) - (frozen == 1 ? 3 : 0));
      }
      EXPECT_EQ(model.global_step(), 5);
      EXPECT_EQ(model.skipped_steps(), 0);
    }
  }
}

/// A norm that batches of two rows pass by.
class NormOfMany : public nn::Cell {
 public:
  MPC_CELL(NormOfMany, weight, norm)
  Tensor Construct(Tensor x) { return weight * (x.dim(0) == 2 ? x : norm(x)); }
  Parameter weight{{2}, Constant(1.0)};
  nn::BatchNorm1d norm{2};
};

LossScaleConfig StaticScale(bool skip) {
  LossScaleConfig config;
  config.mode = LossScaleConfig::Mode::kStatic;
  config.init = 16;
  config.skip = skip;
  return config;
}

struct NormTraining {
  explicit NormTraining(bool skip = true)
      : model(network, loss, optimizer, {.loss_scale_manager = StaticScale(skip), .accumulation_steps = 2}) {}

  absl::Status Run(const std::vector<std::vector<float>>& batches) {
    std::vector<data::Row> rows;
    for (const std::vector<float>& batch : batches) {
      rows.push_back({Tensor::From(batch, {static_cast<std::int64_t>(batch.size()) / 2, 2}), Tensor::Full({1}, 0.0)});
    }
    return model.Train(1, Batches(std::move(rows)));
  }
  std::vector<float> Statistics() const {
    std::vector<float> all = network.norm.moving_mean.Value()->ToFloats();
    for (const float variance : network.norm.moving_variance.Value()->ToFloats()) all.push_back(variance);
    return all;
  }
  std::vector<float> Weight() const { return network.weight.Value()->ToFloats(); }

  NormOfMany network;
  SumLoss loss;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0}};
  Model model;
};

const std::vector<float> kPassesBy = {1, 2, 3, 4}, kMany = {1, 2, 3, 4, -5, 6, 7, -16};
const std::vector<float> kBad = {kInfinity, 2, 3, 4, -5, 6, 7, -16};

// The Program of the second batch is the first to move the statistics: they are still what they were.
TEST(AccumulatedUpdates, StatisticsThatMoveFirstInsideASkippedUpdateStay) {
  NormTraining training;
  const std::vector<float> before = training.Statistics();
  MPC_ASSERT_OK(training.Run({kPassesBy, kBad}));
  EXPECT_EQ(training.model.skipped_steps(), 1);
  EXPECT_EQ(training.Statistics(), before);
}

// What an earlier update has kept is no part of this one.
TEST(AccumulatedUpdates, StatisticsThatMovedInAnEarlierUpdateStayInASkippedOne) {
  const TemporaryFolder folder;
  NormTraining training, resumed;
  MPC_ASSERT_OK(training.Run({kMany, kMany}));
  const std::vector<float> before = training.Statistics();
  MPC_ASSERT_OK(training.model.SaveCheckpoint(folder / "x"));
  MPC_ASSERT_OK(resumed.model.LoadCheckpoint(folder / "x", {.continue_run = false}).status());
  for (NormTraining* each : {&training, &resumed}) {
    MPC_ASSERT_OK(each->Run({kPassesBy, kBad}));
    EXPECT_EQ(each->model.skipped_steps(), 1);
    EXPECT_EQ(each->Statistics(), before);
  }
}

/// What a callback, a load or another Model makes of the statistics.
void WriteStatistics(NormTraining& training) {
  MPC_EXPECT_OK(training.network.norm.moving_mean.SetData(Tensor::From<float>({9, 8}, {2})));
  MPC_EXPECT_OK(training.network.norm.moving_variance.SetData(Tensor::From<float>({7, 6}, {2})));
}

// Another one has written the statistics inside an update, which then undoes its own batches alone.
TEST(AccumulatedUpdates, StatisticsThatAreWrittenInsideASkippedUpdateStay) {
  const std::vector<float> written = {9, 8, 7, 6};
  for (const std::vector<float>& last : {kBad, kPassesBy}) {
    const bool overflows = last == kBad;
    NormTraining between;
    MPC_ASSERT_OK(between.Run({kMany, kMany, kMany}));
    WriteStatistics(between);
    MPC_ASSERT_OK(between.Run({last}));
    EXPECT_EQ(between.model.skipped_steps(), overflows ? 1 : 0);
    EXPECT_EQ(between.Statistics(), written);
  }
  // The first batch of the update has overflowed, the second moves the statistics.
  NormTraining late;
  MPC_ASSERT_OK(late.Run({kBad}));
  WriteStatistics(late);
  MPC_ASSERT_OK(late.Run({kMany}));
  EXPECT_EQ(late.model.skipped_steps(), 1);
  EXPECT_EQ(late.Statistics(), written);
}

TEST(AccumulatedUpdates, StatisticsThatACallbackWritesInsideASkippedUpdateStay) {
  NormTraining training;
  int calls = 0;
  const auto write = [&](RunContext&) {
    if (++calls == 1) WriteStatistics(training);
  };
  const data::Row good = {Tensor::From(kMany, {4, 2}), Tensor::Full({1}, 0.0)};
  const data::Row bad = {Tensor::From(kBad, {4, 2}), Tensor::Full({1}, 0.0)};
  MPC_ASSERT_OK(training.model.Train(
      1, Batches({good, bad}),
      {LambdaCallback({.on_train_step_end = write, .needs_state = [](const RunContext&) { return true; }})}));
  EXPECT_EQ(training.model.skipped_steps(), 1);
  EXPECT_EQ(training.Statistics(), std::vector<float>({9, 8, 7, 6}));
}

TEST(AccumulatedUpdates, StatisticsThatAnotherModelMovesInsideASkippedUpdateStay) {
  NormTraining training;
  MPC_ASSERT_OK(training.Run({kMany}));
  nn::SGD optimizer(training.network.TrainableParams());
  Model other(training.network, training.loss, optimizer);
  const std::vector<float> before = training.Statistics();
  MPC_ASSERT_OK(other.Train(1, Batches({{Tensor::From(kMany, {4, 2}), Tensor::Full({1}, 0.0)}})));
  const std::vector<float> moved = training.Statistics();
  EXPECT_NE(moved, before);
  MPC_ASSERT_OK(training.Run({kBad}));
  EXPECT_EQ(training.model.skipped_steps(), 1);
  EXPECT_EQ(training.Statistics(), moved);
}

// A checkpoint has both what the statistics are and what they were. What is written behind the load counts again.
TEST(AccumulatedUpdates, AFileFromInsideAnUpdateSaysWhatStatisticsWereBeforeIt) {
  const TemporaryFolder folder;
  NormTraining saved, going_on, fresh, written;
  MPC_ASSERT_OK(saved.Run({kMany, kMany}));
  const std::vector<float> before = saved.Statistics();
  MPC_ASSERT_OK(saved.Run({kMany}));
  MPC_ASSERT_OK(saved.model.SaveCheckpoint(folder / "x"));
  MPC_ASSERT_OK(going_on.Run({kMany, kMany, kMany, kMany, kMany}));
  for (NormTraining* each : {&going_on, &fresh, &written}) {
    MPC_ASSERT_OK(each->model.LoadCheckpoint(folder / "x", {.continue_run = false}).status());
    EXPECT_EQ(each->Statistics(), saved.Statistics());
  }
  WriteStatistics(written);
  for (NormTraining* each : {&saved, &going_on, &fresh, &written}) {
    MPC_ASSERT_OK(each->Run({kBad}));
    EXPECT_EQ(each->model.skipped_steps(), 1);
    EXPECT_EQ(each->Statistics(), each == &written ? std::vector<float>({9, 8, 7, 6}) : before);
  }
}

// A file between the write and the next batch tells it from what the update's batches did.
TEST(AccumulatedUpdates, AFileFromInsideAnUpdateSaysWhatWasWrittenInIt) {
  const TemporaryFolder folder;
  NormTraining saved, loaded, fresh, again;
  MPC_ASSERT_OK(saved.Run({kMany, kMany, kMany}));
  MPC_ASSERT_OK(saved.model.SaveCheckpoint(folder / "before"));
  WriteStatistics(saved);
  MPC_ASSERT_OK(saved.model.SaveCheckpoint(folder / "x"));
  MPC_ASSERT_OK(fresh.model.LoadCheckpoint(folder / "x", {.continue_run = false}).status());
  // Of a Model that has no Program yet.
  MPC_ASSERT_OK(loaded.model.LoadCheckpoint(folder / "before", {.continue_run = false}).status());
  WriteStatistics(loaded);
  MPC_ASSERT_OK(loaded.model.SaveCheckpoint(folder / "y"));
  MPC_ASSERT_OK(again.model.LoadCheckpoint(folder / "y", {.continue_run = false}).status());
  for (NormTraining* each : {&saved, &fresh, &loaded, &again}) {
    MPC_ASSERT_OK(each->Run({kBad}));
    EXPECT_EQ(each->model.skipped_steps(), 1);
    EXPECT_EQ(each->Statistics(), std::vector<float>({9, 8, 7, 6}));
  }
}

TEST(AccumulatedUpdates, AFileFromInsideAnUpdateNeedsNoStatisticThatHasNotMoved) {
  const TemporaryFolder folder;
  NormTraining saved, moved, fresh, finite;
  MPC_ASSERT_OK(saved.Run({kMany, kMany, kPassesBy}));
  const std::vector<float> before = saved.Statistics();
  // A file of a run that has never moved them in an update lacks what they were before it.
  NormTraining still;
  MPC_ASSERT_OK(still.network.norm.moving_mean.SetData(saved.network.norm.moving_mean.Value().value()));
  MPC_ASSERT_OK(still.network.norm.moving_variance.SetData(saved.network.norm.moving_variance.Value().value()));
  MPC_ASSERT_OK(still.Run({kPassesBy}));
  MPC_ASSERT_OK(still.model.SaveCheckpoint(folder / "x"));
  MPC_ASSERT_OK(moved.Run({kMany, kMany, kMany}));
  for (NormTraining* each : {&moved, &fresh, &finite}) {
    const absl::StatusOr<ResumeReport> report = each->model.LoadCheckpoint(folder / "x", {.continue_run = false});
    MPC_ASSERT_OK(report.status());
    EXPECT_THAT(report->differences, IsEmpty());
    EXPECT_EQ(each->Statistics(), before);
  }
  for (NormTraining* each : {&moved, &fresh}) {
    MPC_ASSERT_OK(each->Run({kBad}));
    EXPECT_EQ(each->model.skipped_steps(), 1);
    EXPECT_EQ(each->Statistics(), before);
  }
  MPC_ASSERT_OK(finite.Run({kPassesBy}));
  EXPECT_EQ(finite.model.global_step(), 1) << "the update goes on";
  EXPECT_EQ(finite.Weight(), std::vector<float>({1 - 4, 1 - 6}));
}

// The run has moved the statistics and kept nothing, as it skips no update.
TEST(AccumulatedUpdates, ARunThatSkipsNothingLeavesAnUpdateThatMayNotBeSkipped) {
  const TemporaryFolder folder;
  NormTraining saved(/*skip=*/false), fresh, as_saved(/*skip=*/false);
  MPC_ASSERT_OK(saved.Run({kMany}));
  MPC_ASSERT_OK(saved.model.SaveCheckpoint(folder / "x"));
  const std::vector<float> before = saved.Statistics();
  const absl::StatusOr<ResumeReport> report = fresh.model.LoadCheckpoint(folder / "x", {.continue_run = false});
  MPC_ASSERT_OK(report.status());
  EXPECT_THAT(report->differences, Contains("gradients that have been accumulated are dropped"));
  MPC_ASSERT_OK(fresh.Run({kBad}));
  EXPECT_EQ(fresh.model.skipped_steps(), 0) << "an update has begun";
  MPC_ASSERT_OK(fresh.Run({kMany}));
  EXPECT_EQ(fresh.model.skipped_steps(), 1);
  EXPECT_EQ(fresh.Statistics(), before);
  const absl::StatusOr<ResumeReport> same = as_saved.model.LoadCheckpoint(folder / "x", {.continue_run = false});
  MPC_ASSERT_OK(same.status());
  EXPECT_THAT(same->differences, IsEmpty());
  // The other way nothing is missing.
  NormTraining skipping, keeping(/*skip=*/false);
  MPC_ASSERT_OK(skipping.Run({kPassesBy}));
  MPC_ASSERT_OK(skipping.model.SaveCheckpoint(folder / "y"));
  MPC_ASSERT_OK(keeping.model.LoadCheckpoint(folder / "y", {.continue_run = false}).status());
  MPC_ASSERT_OK(keeping.Run({kPassesBy}));
  EXPECT_EQ(keeping.Weight(), std::vector<float>({1 - 4, 1 - 6}));
}

/// The mean of the predictions; the label is not used, but read.
class MeanOfPredictions : public nn::LossBase {
 public:
  MPC_CELL(MeanOfPredictions)
  Tensor Construct(Tensor prediction, Tensor zero) { return reduce_mean(prediction) + reduce_sum(zero); }
};

/// What docs/amp.md says of m batches and one of all rows.
template <typename Network>
struct BatchTraining {
  explicit BatchTraining(std::int64_t accumulation_steps, const char* level = "O0")
      : model(network, loss, optimizer,
              {.amp_level = level, .loss_scale_manager = StaticScale(true), .accumulation_steps = accumulation_steps}) {
  }

  absl::Status Run(const std::vector<std::vector<float>>& batches) {
    std::vector<data::Row> rows;
    for (const std::vector<float>& batch : batches) {
      rows.push_back({Tensor::From(batch, {static_cast<std::int64_t>(batch.size()), 1}), Tensor::Full({1}, 0.0)});
    }
    return model.Train(1, Batches(std::move(rows)));
  }

  Network network;
  MeanOfPredictions loss;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0}};
  Model model;
};

TEST(AccumulatedUpdates, DifferFromTheLargeBatchWhereRowsAreUnequal) {
  BatchTraining<Probe> small(2), large(1);
  MPC_ASSERT_OK(small.Run({{8}, {2, 4, 6}}));
  MPC_ASSERT_OK(large.Run({{8, 2, 4, 6}}));
  EXPECT_FLOAT_EQ(WeightOf(small.network), -(8 + 4) / 2.0f);
  EXPECT_FLOAT_EQ(WeightOf(large.network), -(8 + 2 + 4 + 6) / 4.0f);
}

class Normalised : public nn::Cell {
 public:
  MPC_CELL(Normalised, norm)
  Tensor Construct(Tensor x) { return norm(x); }
  nn::BatchNorm1d norm{1};
};

TEST(AccumulatedUpdates, DifferFromTheLargeBatchInBatchNormalisation) {
  BatchTraining<Normalised> small(2), large(1);
  MPC_ASSERT_OK(small.Run({{1, 3}, {5, 7}}));
  MPC_ASSERT_OK(large.Run({{1, 3, 5, 7}}));
  const auto mean = [](BatchTraining<Normalised>& training) {
    return training.network.norm.moving_mean.Value()->template Item<float>();
  };
  EXPECT_NEAR(mean(small), 0.9 * (0.1 * 2) + 0.1 * 6, 1e-6) << "they move twice";
  EXPECT_NEAR(mean(large), 0.1 * 4, 1e-6);
}

class Dropped : public nn::Cell {
 public:
  MPC_CELL(Dropped, weight, drop)
  Tensor Construct(Tensor x) { return drop(weight * x); }
  Parameter weight{{1}, Constant(1.0)};
  nn::Dropout drop{{.p = 0.5}};
};

TEST(AccumulatedUpdates, DifferFromTheLargeBatchInWhatDropoutDraws) {
  BatchTraining<Dropped> small(2), large(1);
  MPC_ASSERT_OK(small.Run({{1, 2, 3, 4}, {1, 2, 3, 4}}));
  MPC_ASSERT_OK(large.Run({{1, 2, 3, 4, 1, 2, 3, 4}}));
  EXPECT_EQ(StateItem(small.model, "rng.step"), 2);
  EXPECT_EQ(StateItem(large.model, "rng.step"), 1);
}

// At scale 16 the weight's gradient is 2^14 * 16 / rows: 2^16 overflows f16, 2^15 does not.
TEST(AccumulatedUpdates, DifferFromTheLargeBatchInGradientsThatOverflow) {
  BatchTraining<Probe> small(2, "O2"), large(1, "O2");
  MPC_ASSERT_OK(small.Run({{0x1p14f, 0, 0, 0}, {0, 0, 0, 0}}));
  MPC_ASSERT_OK(large.Run({{0x1p14f, 0, 0, 0, 0, 0, 0, 0}}));
  EXPECT_EQ(small.model.skipped_steps(), 1);
  EXPECT_EQ(large.model.skipped_steps(), 0);
  EXPECT_EQ(WeightOf(large.network), -0x1p11f);
}

}  // namespace
}  // namespace mpc::testing
