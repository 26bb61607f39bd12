// Folders of checkpoints and the callback that fills them.
#include "frontend/state/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <sstream>
#include <thread>

#include "frontend/state/checkpoint_file.h"
#include "frontend/train/checkpoint_callback.h"
#include "runtime/atomic_file.h"
#include "tests/frontend/temporary_folder.h"

namespace mpc {
namespace {

using ::mpc::testing::ReadAll;
using ::mpc::testing::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Status WriteSmall(const std::string& path) {
  return internal::WriteCheckpointFile(path, {{{"step", Tensor::Scalar<std::int32_t>(1)}}, {}});
}

std::vector<std::string> Names(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CheckpointFolder, ListsByStepWhatIsCalledACheckpoint) {
  const TemporaryFolder folder;
  for (const char* name :
       {"a-10.safetensors", "a-9.safetensors", "a-x.safetensors", "a-.safetensors", "b-1.safetensors",
        "a-11.safetensors.tmp-7-0", "a-99999999999999999999.safetensors", "a--1.safetensors"}) {
    folder.Write(name, "");
  }
  const std::vector<CheckpointFile> found = ListCheckpoints(folder.path(), "a");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].step, 9);
  EXPECT_EQ(found[1].path, folder / "a-10.safetensors");
  EXPECT_THAT(ListCheckpoints(folder / "none", "a"), IsEmpty());
}

TEST(CheckpointFolder, LatestPassesOverDamagedFilesWithAWarning) {
  const TemporaryFolder folder;
  EXPECT_TRUE(absl::IsNotFound(LatestCheckpoint(folder.path()).status()));
  for (std::int64_t step : {5, 10, 15}) ASSERT_TRUE(WriteSmall(CheckpointPath(folder.path(), "checkpoint", step)).ok());
  const std::string newest = ReadAll(folder / "checkpoint-15.safetensors");
  folder.Write("checkpoint-15.safetensors", newest.substr(0, newest.size() - 1));
  std::string flipped = ReadAll(folder / "checkpoint-10.safetensors");
  flipped.back() = static_cast<char>(flipped.back() ^ 1);
  folder.Write("checkpoint-10.safetensors", flipped);
  std::ostringstream warnings;
  const absl::StatusOr<std::string> latest = LatestCheckpoint(folder.path(), "checkpoint", &warnings);
  ASSERT_TRUE(latest.ok()) << latest.status();
  EXPECT_EQ(*latest, folder / "checkpoint-5.safetensors");
  EXPECT_THAT(warnings.str(),
              ::testing::AllOf(HasSubstr("checkpoint-15"), HasSubstr("checkpoint-10"), HasSubstr("checksum")));
  folder.Write("checkpoint-5.safetensors", "");
  EXPECT_TRUE(absl::IsDataLoss(LatestCheckpoint(folder.path(), "checkpoint", &warnings).status()));
}

/// A run of `steps` steps in epochs of 3 that saves small files.
absl::Status RunCallback(ModelCheckpoint& callback, std::int64_t first, std::int64_t last,
                         absl::Status save_status = absl::OkStatus()) {
  RunContext context;
  context.global_step = first;
  context.set_save([&](const std::string& path) { return save_status.ok() ? WriteSmall(path) : save_status; });
  callback.OnTrainBegin(context);
  while (context.failure().ok() && context.global_step < last) {
    ++context.global_step;
    context.epoch = (context.global_step + 2) / 3;
    callback.OnStepEnd(context);
    if (context.global_step % 3 == 0) callback.OnEpochEnd(context);
  }
  callback.OnTrainEnd(context);
  return context.failure();
}

TEST(ModelCheckpoint, SavesByStepsAndAtTheEndAndKeepsTheNewest) {
  const TemporaryFolder folder;
  ModelCheckpoint callback(
      {.prefix = "net", .directory = folder.path(), .save_checkpoint_steps = 2, .keep_checkpoint_max = 3});
  ASSERT_TRUE(RunCallback(callback, 0, 9).ok());
  EXPECT_THAT(Names(folder), ElementsAre("net-6.safetensors", "net-8.safetensors", "net-9.safetensors"));
  EXPECT_EQ(callback.latest_checkpoint(), folder / "net-9.safetensors");
}

TEST(ModelCheckpoint, KeepsTheFileJustSavedBesideADamagedLaterOne) {
  const TemporaryFolder folder;
  for (std::int64_t step : {6, 9}) ASSERT_TRUE(WriteSmall(CheckpointPath(folder.path(), "checkpoint", step)).ok());
  folder.Write("checkpoint-100.safetensors", "damaged");
  ModelCheckpoint callback({.directory = folder.path(), .keep_checkpoint_max = 1});
  ASSERT_TRUE(RunCallback(callback, 9, 12).ok());
  EXPECT_THAT(Names(folder), ElementsAre("checkpoint-100.safetensors", "checkpoint-12.safetensors"));
  std::ostringstream warnings;
  const absl::StatusOr<std::string> latest = LatestCheckpoint(folder.path(), "checkpoint", &warnings);
  ASSERT_TRUE(latest.ok()) << latest.status();
  EXPECT_EQ(*latest, folder / "checkpoint-12.safetensors");
}

TEST(ModelCheckpoint, DamagedFilesDoNotCountAsKept) {
  const TemporaryFolder folder;
  for (std::int64_t step : {3, 6}) ASSERT_TRUE(WriteSmall(CheckpointPath(folder.path(), "checkpoint", step)).ok());
  folder.Write("checkpoint-2.safetensors", "damaged and old");
  folder.Write("checkpoint-9.safetensors", "damaged");
  ModelCheckpoint callback({.directory = folder.path(), .save_checkpoint_steps = 5, .keep_checkpoint_max = 2});
  ASSERT_TRUE(RunCallback(callback, 9, 10).ok());
  EXPECT_THAT(Names(folder),
              ElementsAre("checkpoint-10.safetensors", "checkpoint-6.safetensors", "checkpoint-9.safetensors"));
}

TEST(ModelCheckpoint, SavesEveryEpochByDefaultAndMakesTheFolder) {
  const TemporaryFolder folder;
  ModelCheckpoint callback({.directory = folder / "new/folder"});
  ASSERT_TRUE(RunCallback(callback, 0, 6).ok());
  EXPECT_EQ(ListCheckpoints(folder / "new/folder").size(), 2u);
}

TEST(ModelCheckpoint, RemovesWhatAKilledProcessLeft) {
  const TemporaryFolder folder;
  folder.Write("checkpoint-7.safetensors.tmp-12-0", "half");
  folder.Write("other-7.safetensors.tmp-12-0", "half");
  ModelCheckpoint callback({.directory = folder.path()});
  ASSERT_TRUE(RunCallback(callback, 0, 3).ok());
  EXPECT_THAT(Names(folder), ElementsAre("checkpoint-3.safetensors", "other-7.safetensors.tmp-12-0"));
}

TEST(ModelCheckpoint, LeavesTheUnfinishedFilesOfOthers) {
  const TemporaryFolder folder;
  const std::vector<std::string> others = {"net-7.safetensors.tmp-12", "net-b-7.safetensors.tmp-12-0",
                                           "net-notes.tmp-1-2", "net-notes.tmp-old.txt", "net-x.safetensors.tmp-12-0"};
  for (const std::string& name : others) folder.Write(name, "the user's");
  folder.Write("net-7.safetensors.tmp-12-0", "half");
  RemoveUnfinishedCheckpoints(folder.path(), "net");
  EXPECT_THAT(Names(folder), ::testing::ElementsAreArray(others));
}

TEST(CheckpointFolder, RemovesTheUnfinishedFilesOfOneFileAlone) {
  const TemporaryFolder folder;
  for (const char* name : {"a.safetensors", "a.safetensors.tmp-7-1", "a.safetensors.tmp-x", "a.safetensors2.tmp-7-1"}) {
    folder.Write(name, "");
  }
  RemoveUnfinishedFiles(folder.path(), "a.safetensors");
  EXPECT_THAT(Names(folder), ElementsAre("a.safetensors", "a.safetensors.tmp-x", "a.safetensors2.tmp-7-1"));
}

TEST(ModelCheckpoint, LeavesWhatAnotherRunWritesInAFolderThatItRefuses) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteSmall(folder / "checkpoint-6.safetensors").ok());
  folder.Write("checkpoint-7.safetensors.tmp-12-0", "half");
  ModelCheckpoint callback({.directory = folder.path()});
  EXPECT_FALSE(RunCallback(callback, 0, 3).ok());
  EXPECT_THAT(Names(folder), ElementsAre("checkpoint-6.safetensors", "checkpoint-7.safetensors.tmp-12-0"));
}

TEST(CheckpointFolder, LeavesAFileThatIsBeingWritten) {
  const TemporaryFolder folder;
  const std::string path = folder / "a.safetensors";
  // A large file, and another thread that removes what is unfinished until it is there.
  const std::vector<std::uint8_t> chunk(1 << 20, 7);
  const std::vector<absl::Span<const std::uint8_t>> chunks(16, chunk);
  std::atomic<bool> removes = true;
  std::thread remover([&] {
    while (removes) RemoveUnfinishedFiles(folder.path(), "a.safetensors");
  });
  for (int i = 0; i < 4; ++i) {
    const absl::Status written = runtime::WriteFileAtomically(path, chunks, {.sync = false});
    EXPECT_TRUE(written.ok()) << written;
  }
  removes = false;
  remover.join();
  EXPECT_THAT(Names(folder), ElementsAre("a.safetensors"));
}

TEST(ModelCheckpoint, RefusesAFolderOfALaterRun) {
  const TemporaryFolder folder;
  ModelCheckpoint callback({.directory = folder.path()});
  ASSERT_TRUE(RunCallback(callback, 0, 6).ok());
  EXPECT_THAT(std::string(RunCallback(callback, 0, 3).message()),
              HasSubstr("checkpoint-3.safetensors is of step 3, training begins at step 0"));
  EXPECT_TRUE(RunCallback(callback, 6, 9).ok()) << "that is resuming";
  folder.Write("checkpoint-12.safetensors", "damaged");
  EXPECT_TRUE(RunCallback(callback, 9, 12).ok()) << "a damaged one is written again";
}

TEST(ModelCheckpoint, ErrorsEndTheRun) {
  const TemporaryFolder folder;
  ModelCheckpoint callback({.directory = folder.path()});
  EXPECT_EQ(RunCallback(callback, 0, 3, absl::ResourceExhaustedError("disk full")).code(),
            absl::StatusCode::kResourceExhausted);
  ModelCheckpoint bad_prefix({.prefix = "a/b", .directory = folder.path()});
  EXPECT_THAT(std::string(RunCallback(bad_prefix, 0, 3).message()), HasSubstr("without '/'"));
  ModelCheckpoint negative({.directory = folder.path(), .keep_checkpoint_max = -1});
  EXPECT_THAT(std::string(RunCallback(negative, 0, 3).message()), HasSubstr("must not be negative"));
  ModelCheckpoint no_folder({.directory = folder.Write("file", "") + "/x"});
  EXPECT_THAT(std::string(RunCallback(no_folder, 0, 3).message()), HasSubstr("cannot make the folder"));
}

}  // namespace
}  // namespace mpc
