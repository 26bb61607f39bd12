// Callbacks that count epochs: a run that is resumed goes on with their counts, wherever it stopped.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/frontend/temporary_folder.h"
#include "tests/training/resume_support.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

data::Dataset Valid() { return GoodBatches({2, 6, 6}, 1); }

/// Callbacks that count epochs without an improvement, of which each run has one: the first.
struct Counting {
  explicit Counting(const std::string& monitor = "eval_loss")
      : plateau({.monitor = monitor, .factor = 0.5, .patience = 2, .min_delta = 100}),
        stopping({.monitor = monitor, .min_delta = 100, .patience = 4}) {}
  CallbackList list() { return {plateau, stopping}; }

  ReduceLROnPlateau plateau;
  EarlyStopping stopping;
};

void ExpectSameEnd(const Training<ConvNorm>& whole, const Counting& of_whole, const Training<ConvNorm>& training,
                   const Counting& counting) {
  EXPECT_EQ(counting.stopping.stopped_epoch(), 5);
  EXPECT_EQ(counting.stopping.best(), of_whole.stopping.best());
  EXPECT_EQ(counting.stopping.best_epoch(), 1);
  EXPECT_EQ(training.optimizer->learning_rate(), whole.optimizer->learning_rate());
  EXPECT_THAT(Differences(StateOf(*whole.model), StateOf(*training.model)), IsEmpty());
}

/// Keeps the file of the epoch whose loss is the largest, in a folder of its own.
struct BestSaver {
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  std::shared_ptr<Callback> Make() const {
    return std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{
        .directory = folder.path(), .keep_checkpoint_max = 1, .save_best_only = true, .mode = "max"});
  }
  TemporaryFolder folder;
};

// The keeper stands before callbacks that read where the run begins, and backs up what they have counted.
TEST(ResumedCallbacks, GoOnCountingAtABackup) {
  const data::Dataset batches = ShuffledBatches(3), valid = Valid();
  Training<ConvNorm> whole({"O2", DType::kF16});
  Counting of_whole;
  BestSaver saver_of_whole;
  MPC_ASSERT_OK(whole.model->Fit(9, batches, valid, {}, {of_whole.plateau, of_whole.stopping, saver_of_whole.Make()}));
  ASSERT_EQ(of_whole.stopping.stopped_epoch(), 5);
  ASSERT_THAT(saver_of_whole.files(), Not(ElementsAre("checkpoint-15.safetensors"))) << "of the last epoch";
  // Of each epoch one step: in the second the first backup is there.
  for (const std::int64_t step : {2, 5, 8, 11, 14}) {
    for (const bool first : {true, false}) {
      SCOPED_TRACE(step);
      const TemporaryFolder folder;
      const BestSaver saver;
      BackupAndRestore keeper({.backup_dir = folder.path()});
      Training<ConvNorm> crashed({"O2", DType::kF16}), restarted({"O2", DType::kF16});
      Counting before, after;
      const auto list = [&](Counting& counting) {
        return first ? CallbackList({keeper, counting.plateau, counting.stopping, saver.Make(), FailAt(step)})
                     : CallbackList({counting.plateau, counting.stopping, keeper, saver.Make(), FailAt(step)});
      };
      EXPECT_EQ(crashed.model->Fit(9, batches, valid, {}, list(before)).message(), "power");
      CallbackList again = first ? CallbackList({keeper, after.plateau, after.stopping, saver.Make()})
                                 : CallbackList({after.plateau, after.stopping, keeper, saver.Make()});
      MPC_ASSERT_OK(restarted.model->Fit(9, batches, valid, {}, again));
      ExpectSameEnd(whole, of_whole, restarted, after);
      EXPECT_EQ(saver.files(), saver_of_whole.files());
    }
  }
}

// A file that is saved between two runs, or by a Model that has only loaded one, has what the last run has counted.
TEST(ResumedCallbacks, GoOnCountingAtAFileFromBetweenTwoRuns) {
  const data::Dataset batches = ShuffledBatches(3), valid = Valid();
  Training<ConvNorm> whole({"O2", DType::kF16});
  Counting of_whole;
  MPC_ASSERT_OK(whole.model->Fit(9, batches, valid, {}, of_whole.list()));
  const TemporaryFolder folder;
  Training<ConvNorm> first({"O2", DType::kF16}), between({"O2", DType::kF16}), last({"O2", DType::kF16}),
      anew({"O2", DType::kF16});
  Counting of_first, of_last, of_anew;
  MPC_ASSERT_OK(first.model->Fit(3, batches, valid, {}, of_first.list()));
  MPC_ASSERT_OK(first.model->SaveCheckpoint(folder / "first"));
  MPC_ASSERT_OK(between.model->LoadCheckpoint(folder / "first").status());
  MPC_ASSERT_OK(between.model->SaveCheckpoint(folder / "between"));
  MPC_ASSERT_OK(last.model->LoadCheckpoint(folder / "between").status());
  MPC_ASSERT_OK(last.model->Fit(9, batches, valid, {}, of_last.list()));
  ExpectSameEnd(whole, of_whole, last, of_last);
  MPC_ASSERT_OK(anew.model->LoadCheckpoint(folder / "between", {.continue_run = false}).status());
  MPC_ASSERT_OK(anew.model->Fit(9, batches, valid, {}, of_anew.list()));
  EXPECT_EQ(of_anew.stopping.stopped_epoch(), 5) << "of a run of its own";
  EXPECT_EQ(anew.model->global_step(), 24);
}

// A run that ends before its first step counts nothing. The next one is a run of its own, for callbacks too.
TEST(ResumedCallbacks, KeepWhatAFileSaysWhereNoRunBegins) {
  const data::Dataset batches = ShuffledBatches(3), valid = Valid();
  Training<ConvNorm> whole({"O2", DType::kF16});
  Counting of_whole;
  MPC_ASSERT_OK(whole.model->Fit(9, batches, valid, {}, of_whole.list()));
  const TemporaryFolder folder, backups;
  Training<ConvNorm> first({"O2", DType::kF16});
  Counting of_first;
  MPC_ASSERT_OK(first.model->Fit(3, batches, valid, {}, of_first.list()));
  MPC_ASSERT_OK(first.model->SaveCheckpoint(folder / "first"));
  const LambdaCallback refuse(
      {.on_train_begin = [](RunContext& context) { context.Fail(absl::InternalError("refused")); }});
  for (const bool by_callback : {false, true}) {
    SCOPED_TRACE(by_callback);
    Training<ConvNorm> failed({"O2", DType::kF16}), last({"O2", DType::kF16});
    Counting of_failed, of_own, of_last;
    std::filesystem::copy_file(folder / "first", backups / "backup.safetensors",
                               std::filesystem::copy_options::overwrite_existing);
    BackupAndRestore keeper({.backup_dir = backups.path()});
    if (!by_callback) MPC_ASSERT_OK(failed.model->LoadCheckpoint(folder / "first").status());
    CallbackList list({of_failed.plateau, of_failed.stopping, LambdaCallback(refuse)});
    if (by_callback) list = CallbackList({keeper, of_failed.plateau, of_failed.stopping, LambdaCallback(refuse)});
    EXPECT_EQ(failed.model->Fit(9, batches, valid, {}, list).message(), "refused");
    MPC_ASSERT_OK(failed.model->SaveCheckpoint(folder / "failed"));
    MPC_ASSERT_OK(failed.model->Fit(9, batches, valid, {}, of_own.list()));
    EXPECT_EQ(of_own.stopping.stopped_epoch(), 5);
    EXPECT_EQ(failed.model->global_step(), 24);
    MPC_ASSERT_OK(last.model->LoadCheckpoint(folder / "failed").status());
    MPC_ASSERT_OK(last.model->Fit(9, batches, valid, {}, of_last.list()));
    ExpectSameEnd(whole, of_whole, last, of_last);
  }
}

// The loss of a batch inside an epoch is not that of the epoch, which the resumed run completes.
TEST(ResumedCallbacks, CountAnInterruptedEpochOnce) {
  const data::Dataset batches = ShuffledBatches(3);
  Training<ConvNorm> whole({"O2", DType::kF16});
  Counting of_whole("loss");
  MPC_ASSERT_OK(whole.model->Train(9, batches, of_whole.list()));
  ASSERT_EQ(of_whole.stopping.stopped_epoch(), 5);
  // The last one stops behind all steps of its epoch, which a resumed run ends.
  for (const std::int64_t step : {1, 4, 5, 6}) {
    SCOPED_TRACE(step);
    const TemporaryFolder folder;
    Training<ConvNorm> stopped({"O2", DType::kF16}), resumed({"O2", DType::kF16});
    Counting before("loss"), after("loss");
    std::vector<bool> complete;
    MPC_ASSERT_OK(stopped.model->Train(
        9, batches,
        {before.plateau, before.stopping,
         LambdaCallback(
             {.on_train_step_end =
                  [&](RunContext& context) {
                    if (context.global_step == step) context.RequestStop();
                  },
              .on_train_epoch_end = [&](RunContext& context) { complete.push_back(context.epoch_complete); }})}));
    EXPECT_EQ(complete.size(), step == 1 ? 1U : 2U);
    EXPECT_FALSE(complete.back());
    MPC_ASSERT_OK(stopped.model->SaveCheckpoint(folder / "stopped"));
    MPC_ASSERT_OK(resumed.model->LoadCheckpoint(folder / "stopped").status());
    MPC_ASSERT_OK(resumed.model->Train(9, batches, after.list()));
    ExpectSameEnd(whole, of_whole, resumed, after);
  }
}

/// A training that records what rows of a log have. At O0 each of its numbers is finite, so that it equals itself.
Training<ConvNorm> Recording() {
  Training<ConvNorm> training({"O0", DType::kF32});
  training.model = std::make_unique<Model>(
      *training.network, training.loss, *training.optimizer,
      ModelOptions{.amp_level = "O0", .record_gradient_norm = true, .record_learning_rate = true});
  return training;
}

/// What reads the last loss and the records at the end of an epoch.
struct Reading {
  explicit Reading(const std::string& file) : log({.filename = file, .append = true}) {}

  EarlyStopping stopping{{.monitor = "loss", .patience = 9}};
  History history;
  CSVLogger log;
};

// A file of the last step of an epoch: the resumed run ends the epoch without a batch of it.
TEST(ResumedCallbacks, EndAnEpochOfWhichNoStepIsLeftAsItWas) {
  const data::Dataset batches = ShuffledBatches(3);
  const TemporaryFolder folder;
  Training<ConvNorm> whole = Recording(), crashed = Recording(), resumed = Recording(), between = Recording();
  Reading of_whole(folder / "whole.csv"), before(folder / "parts.csv"), after(folder / "parts.csv");
  MPC_ASSERT_OK(whole.model->Train(3, batches, {of_whole.stopping, of_whole.history, of_whole.log}));
  const CallbackList list(
      {before.stopping, before.history, before.log, std::make_shared<SaveAt>(3, folder / "file"), FailAt(3)});
  EXPECT_EQ(crashed.model->Train(3, batches, list).message(), "power");
  // A Model that only loads a file saves what the file says.
  MPC_ASSERT_OK(between.model->LoadCheckpoint(folder / "file").status());
  MPC_ASSERT_OK(between.model->SaveCheckpoint(folder / "between"));
  EXPECT_EQ(ReadAll(folder / "between"), ReadAll(folder / "file"));
  MPC_ASSERT_OK(resumed.model->LoadCheckpoint(folder / "between").status());
  MPC_ASSERT_OK(resumed.model->Train(3, batches, {after.stopping, after.history, after.log}));
  EXPECT_EQ(after.history.of("loss"), of_whole.history.of("loss"));
  EXPECT_EQ(after.history.of("gradient_norm"), of_whole.history.of("gradient_norm"));
  EXPECT_EQ(after.stopping.best(), of_whole.stopping.best());
  EXPECT_EQ(after.stopping.best_epoch(), of_whole.stopping.best_epoch());
  EXPECT_EQ(ReadAll(folder / "parts.csv"), ReadAll(folder / "whole.csv"));
}

}  // namespace
}  // namespace mpc::testing
