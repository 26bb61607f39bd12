// Training that is killed at random steps and started again ends with the bits of training that was left alone, with
// any number of workers. Each life is a process of its own: the test itself trains nothing, so that it can fork.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::ConvNorm;
using testing::TemporaryFolder;
using testing::Training;

constexpr int kKills = 20;
constexpr std::int64_t kStepsOfEpoch = 5;
constexpr std::int64_t kEpochs = 30;
constexpr std::int64_t kWorkers[] = {0, 1, 4};

/// Epochs of kStepsOfEpoch batches in a new order each. Every image is scaled by what its place draws.
data::Dataset DrawnBatches(std::int64_t workers) {
  constexpr std::int64_t kBatch = 8;
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < kStepsOfEpoch * kBatch; ++i) {
    std::vector<float> label(3, 0.0f);
    label[static_cast<std::size_t>(i % 3)] = 1;
    rows.push_back({testing::Values({2, 6, 6}, 100 + i), Tensor::From(label, {3})});
  }
  const auto scale = [](const Tensor& image, const data::RowPosition& position) {
    std::vector<float> values = image.ToFloats();
    const float factor = 1 + 0.5f * testing::Value(1000 * position.epoch + position.row, 5);
    for (float& value : values) value *= factor;
    return Tensor::From(values, image.shape());
  };
  return data::GeneratorDataset(std::move(rows), {"data", "label"})
      .Shuffle(3)
      .Map(scale, "data", {.num_parallel_workers = workers})
      .Batch(kBatch)
      .Prefetch();
}

/// How a life ends: before its `step`-th step, or after it and before what stands behind this callback. 0: never.
struct Death {
  std::int64_t step = 0;
  bool before = false;
};

class DieAt : public Callback {
 public:
  explicit DieAt(const Death& death) : death_(death) {}
  void OnStepBegin(RunContext&) override {
    ++steps_;
    if (death_.before) DieIfDue();
  }
  void OnStepEnd(RunContext&) override { DieIfDue(); }

 private:
  void DieIfDue() {
    if (steps_ == death_.step) ::raise(SIGKILL);
  }

  Death death_;
  std::int64_t steps_ = 0;
};

/// Trains to the end with what keeps the run in `folder`, and goes on at what is there.
using Keeping =
    std::function<absl::Status(Model& model, const data::Dataset& dataset, DieAt& die, const std::string& folder)>;

/// Backs up after each epoch.
absl::Status TrainWithBackups(Model& model, const data::Dataset& dataset, DieAt& die, const std::string& folder) {
  return model.Train(kEpochs, dataset, {die, BackupAndRestore({.backup_dir = folder + "/backup"})});
}

/// Saves after every third step, which is in the middle of most epochs.
absl::Status TrainWithCheckpoints(Model& model, const data::Dataset& dataset, DieAt& die, const std::string& folder) {
  ModelCheckpoint saver({.directory = folder + "/steps", .save_checkpoint_steps = 3, .keep_checkpoint_max = 2});
  if (const absl::StatusOr<std::string> latest = LatestCheckpoint(folder + "/steps"); latest.ok()) {
    if (absl::Status status = model.LoadCheckpoint(*latest).status(); !status.ok()) return status;
  }
  return model.Train(kEpochs, dataset, {die, saver});
}

std::string EndOf(const TemporaryFolder& folder) { return testing::ReadAll(folder / "end.safetensors"); }

/// One life in a process of its own. True if it came to its end, which is then in `folder`; false if it was killed.
bool Live(const Keeping& train, const TemporaryFolder& folder, std::int64_t workers, const Death& death) {
  const pid_t child = ::fork();
  if (child == 0) {
    Training<ConvNorm> training({"O2", DType::kF16});
    DieAt die(death);
    absl::Status status = train(*training.model, DrawnBatches(workers), die, folder.path());
    if (status.ok()) status = training.model->SaveCheckpoint(folder / "end.safetensors");
    if (!status.ok()) std::cerr << status << std::endl;
    ::_exit(status.ok() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  EXPECT_TRUE(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0)) << status;
  return !killed;
}

class KilledTraining : public ::testing::TestWithParam<Keeping> {};

TEST_P(KilledTraining, EndsWithTheBitsOfOneThatWasLeftAlone) {
  const TemporaryFolder alone;
  ASSERT_TRUE(Live(GetParam(), alone, /*workers=*/0, {}));
  const std::string expected = EndOf(alone);
  ASSERT_FALSE(expected.empty());

  const TemporaryFolder folder;
  std::mt19937 engine(21);
  std::uniform_int_distribution<std::int64_t> steps(1, kStepsOfEpoch + 3);
  for (int kill = 0; kill < kKills; ++kill) {
    const Death death{steps(engine), (engine() & 1) != 0};
    ASSERT_FALSE(Live(GetParam(), folder, kWorkers[kill % 3], death)) << "life " << kill << " came to its end";
  }
  ASSERT_TRUE(Live(GetParam(), folder, /*workers=*/4, {}));
  EXPECT_TRUE(EndOf(folder) == expected);
}

INSTANTIATE_TEST_SUITE_P(Keeping, KilledTraining, ::testing::Values(TrainWithBackups, TrainWithCheckpoints),
                         [](const auto& info) { return info.index == 0 ? "Backups" : "Checkpoints"; });

TEST(TrainingOnWorkers, HasTheSameBitsWithAnyNumberOfThem) {
  std::string expected;
  for (const std::int64_t workers : kWorkers) {
    const TemporaryFolder folder;
    ASSERT_TRUE(Live(TrainWithBackups, folder, workers, {}));
    if (workers == 0) expected = EndOf(folder);
    EXPECT_FALSE(expected.empty());
    EXPECT_TRUE(EndOf(folder) == expected) << workers;
  }
}

}  // namespace
}  // namespace mpc
