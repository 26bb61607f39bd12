// Training in several processes: the state of all has the bits of one process that accumulates, whatever happens.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "kernels/collective.h"
#include "kernels/cpu/kernel.h"
#include "runtime/step_groups.h"
#include "tests/training/process_group.h"

namespace mpc::testing {
namespace {

const Shape kImage = {2, 6, 6};

/// What sums over micro-steps is not there with one micro-step.
Snapshot WithoutAccumulators(Snapshot snapshot) {
  std::erase_if(snapshot, [](const auto& entry) { return entry.first.rfind("accumulator.", 0) == 0; });
  return snapshot;
}

enum class Rule { kMomentum, kLamb };

struct Setting {
  Level level;
  Rule rule = Rule::kMomentum;
  std::int64_t micro_batches = 4;
  std::optional<double> clip_global_norm = 0.5;
};

/// The Model of one process of `processes`, one of which accumulates all micro-batches.
struct Trained {
  Trained(const Setting& setting, int processes)
      : model(network, loss, optimizer(setting.rule),
              {.amp_level = setting.level.level,
               .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 1024, .scale_window = 3}),
               .amp_dtype = setting.level.dtype,
               .accumulation_steps = processes == 1 ? setting.micro_batches : 1,
               .clip_global_norm = setting.clip_global_norm}) {}

  nn::Optimizer& optimizer(Rule rule) {
    return rule == Rule::kLamb ? static_cast<nn::Optimizer&>(lamb) : static_cast<nn::Optimizer&>(momentum);
  }

  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss;
  nn::Momentum momentum{network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9}};
  nn::Lamb lamb{network.TrainableParams(), {.learning_rate = 0.01}};
  Model model;
};

/// 24 batches. One has an infinity, so that the updates which read it are skipped.
data::Dataset Rows() {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 24; ++i) batches.push_back(MakeBatch(kImage, 8, i));
  batches[9] = WithBadValue(batches[9], kInfinity);
  return Batches(std::move(batches));
}

absl::Status TrainDataParallel(std::int64_t bucket_mib) {
  return SetAutoParallelContext({.parallel_mode = ParallelMode::kDataParallel, .bucket_mib = bucket_mib});
}

/// The state of every process after training, which is the same.
Snapshot TrainIn(int processes, const Setting& setting) {
  EXPECT_TRUE(RunGroup(processes, [&](int rank) {
    Trained trained(setting, processes);
    MPC_EXPECT_OK(trained.model.Train(2, Rows()));
    EXPECT_GT(trained.model.skipped_steps(), 0);
    Write(FilePath(absl::StrCat(rank)), StateOf(trained.model));
  }));
  Snapshot first = Read(FilePath("0"));
  for (int rank = 1; rank < processes; ++rank) {
    EXPECT_EQ(Differences(first, Read(FilePath(absl::StrCat(rank)))), std::vector<std::string>{}) << rank;
  }
  EXPECT_GT(first.size(), 10U);
  return WithoutAccumulators(std::move(first));
}

class ProcessTraining : public ::testing::TestWithParam<Level> {};

TEST_P(ProcessTraining, HasTheBitsOfOneProcessThatAccumulates) {
  for (const Rule rule : {Rule::kMomentum, Rule::kLamb}) {
    for (const int processes : {2, 4}) {
      const Setting setting{GetParam(), rule, processes};
      const Snapshot alone = TrainIn(1, setting);
      EXPECT_EQ(Differences(alone, TrainIn(processes, setting)), std::vector<std::string>{}) << processes;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ProcessTraining, ::testing::Values(Level{"O0", DType::kF32}, Level{"O2", DType::kF16}),
                         LevelName);

/// The messages that a process sends in a step of the Model.
std::size_t MessagesOf(const Model& model) {
  const runtime::Program& step = model.compiled().front()->program;
  std::size_t messages = 0;
  for (const runtime::InstructionRange& range : runtime::GroupInstructions(step, cpu::MayGroup)) {
    const std::string& kernel = step.step().instructions[range.first].kernel;
    messages += IsCollective(kernel) && kernel != "process_rank" ? 1 : 0;
  }
  return messages;
}

const Setting kSetting{{"O2", DType::kF16}};

/// Apart: one for each parameter, two for statistics, and one for the decision. Clipping wants the norm of the means
/// before it decides.
TEST(ProcessTraining, BucketsMakeFewMessagesAndDoNotChangeBits) {
  for (const int processes : {2, 4}) {
    for (const std::optional<double> clip : {std::optional<double>(), std::optional(0.5)}) {
      std::vector<Snapshot> states;
      for (const std::int64_t bucket_mib : {0, 25}) {
        ASSERT_TRUE(RunGroup(processes, [&](int rank) {
          MPC_ASSERT_OK(TrainDataParallel(bucket_mib));
          Setting setting = kSetting;
          setting.clip_global_norm = clip;
          Trained trained(setting, processes);
          MPC_EXPECT_OK(trained.model.Train(1, Rows()));
          const std::size_t apart = trained.network.TrainableParams().size() + 3, together = clip.has_value() ? 3 : 2;
          EXPECT_EQ(MessagesOf(trained.model), bucket_mib == 0 ? apart : together);
          if (rank == 0) Write(FilePath("buckets"), StateOf(trained.model));
        }));
        states.push_back(Read(FilePath("buckets")));
      }
      EXPECT_EQ(Differences(states[0], states[1]), std::vector<std::string>{}) << processes;
    }
  }
}

TEST(ProcessTraining, NamesBucketsOfOtherSizes) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    MPC_ASSERT_OK(TrainDataParallel(/*bucket_mib=*/25 + rank));
    Trained trained(kSetting, 2);
    EXPECT_EQ(trained.model.Train(1, Rows()).message(),
              "processes that train together differ: rank 0 has \"bucket_mib: 25\", rank 1 has \"bucket_mib: 26\"");
  }));
}

TEST(ProcessTraining, ARunContinuesInAnotherNumberOfProcesses) {
  const std::string file = FilePath("checkpoint");
  const auto train = [&](int processes, std::int64_t epochs, bool resumes) {
    return RunGroup(processes, [&](int rank) {
      Trained trained(kSetting, processes);
      if (resumes) MPC_EXPECT_OK(trained.model.LoadCheckpoint(file).status());
      MPC_EXPECT_OK(trained.model.Train(epochs, Rows()));
      MPC_EXPECT_OK(trained.model.SaveCheckpoint(file));
      if (rank == 0) Write(FilePath("state"), StateOf(trained.model));
    });
  };
  ASSERT_TRUE(train(4, 2, false));
  const Snapshot whole = WithoutAccumulators(Read(FilePath("state")));
  for (const auto& [first, then] : {std::pair(1, 4), std::pair(4, 1)}) {
    ASSERT_TRUE(train(first, 1, false));
    ASSERT_TRUE(train(then, 2, true));
    EXPECT_EQ(Differences(whole, WithoutAccumulators(Read(FilePath("state")))), std::vector<std::string>{})
        << first << " then " << then;
  }
  std::filesystem::remove(file);
}

TEST(ProcessTraining, NamesWhatDiffersBetweenProcesses) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Setting setting = kSetting;
    if (rank == 1) setting.clip_global_norm = 0.25;
    Trained trained(setting, 2);
    const absl::Status status = trained.model.Train(1, Rows());
    EXPECT_EQ(status.message(),
              "processes that train together differ: rank 0 has \"clip_global_norm: 0.5\", rank 1 has "
              "\"clip_global_norm: 0.25\"");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }));
}

/// The errors of two processes of which rank 1 reads `rows` and has been changed by `change`.
void ExpectDifference(const std::function<void()>& change, const data::Dataset& rows, const std::string& difference) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    if (rank == 1) change();
    Trained trained(kSetting, 2);
    const absl::Status status = trained.model.Train(1, rank == 1 ? rows : Rows());
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status.message().find(difference), std::string::npos) << status;
  }));
}

TEST(ProcessTraining, NamesSeedsThatDiffer) {
  ExpectDifference([] { SetSeed(8); }, Rows(), "rank 0 has \"seed: 7\", rank 1 has \"seed: 8\"");
}

TEST(ProcessTraining, NamesDataSetsThatDiffer) {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 24; ++i) batches.push_back(MakeBatch(kImage, 8, i + 1));
  ExpectDifference(
      [] {}, Batches(std::move(batches)),
      "processes that train together differ: rank 0 has \"first batch of the data set: tensor<8x2x6x6xf32> "
      "hash ");
  ExpectDifference([] {}, Rows().Take(22),
                   "rank 0 has \"batches of an epoch: 24\", rank 1 has \"batches of an epoch: 22\"");
}

/// Each process measures how fast it is. All decide by the numbers of one.
TEST(ProcessTraining, AgreesOnTheRatesThatLevelAutoDecidesBy) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained({{"auto", DType::kF16}}, 2);
    MPC_EXPECT_OK(trained.model.Train(1, GoodBatches(kImage, 4)));
  }));
}

TEST(ProcessTraining, NamesTheOptionByWhichProgramsDifferBeforeAStepHasRun) {
  const std::string folder = FilePath("programs");
  std::filesystem::create_directory(folder);
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    ::setenv("MPC_DUMP_PROGRAMS", folder.c_str(), 1);
    if (rank == 1) MPC_EXPECT_OK(SetContext({.num_threads = 1, .allow_winograd = true}));
    Trained trained(kSetting, 2);
    const absl::Status status = trained.model.Train(1, Rows());
    // Who comes first waits in the step, and hears of the other one's error.
    EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsUnavailable(status)) << status;
    for (const char* part : {"Programs differ: train_step(",
                             "ranks differ in \"compile option plan.allow_winograd\": rank 0 "
                             "has 0, rank 1 has 1",
                             "With MPC_DUMP_PROGRAMS=FOLDER"}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status;
    }
    EXPECT_EQ(trained.model.global_step(), 0);
  }));
  for (const char* rank : {"rank0", "rank1"}) {
    const std::filesystem::directory_iterator files(folder);
    EXPECT_EQ(std::count_if(begin(files), end(files),
                            [&](const auto& file) {
                              return file.path().stem().extension() == absl::StrCat(".", rank) &&
                                     std::filesystem::file_size(file.path()) > 1000;
                            }),
              1)
        << rank;
  }
  std::filesystem::remove_all(folder);
}

TEST(ProcessTraining, AnErrorOfOneProcessEndsTheOthersWithItsText) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kSetting, 2);
    LambdaCallback fails({.on_train_step_end = [&](RunContext& context) {
      if (context.global_step == 3) context.Fail(absl::DataLossError("the disk is full"));
    }});
    const absl::Status status = trained.model.Train(2, Rows(), {fails});
    if (rank == 0) {
      EXPECT_EQ(status, absl::DataLossError("the disk is full"));
      // Only what it has told can end the wait of rank 1.
      std::this_thread::sleep_for(std::chrono::seconds(2));
      return;
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    for (const char* part :
         {"rank 0 (host ", "has failed: the disk is full; it was last at step 3, ", "rank 1 waited in "}) {
      EXPECT_NE(status.message().find(part), std::string::npos) << status;
    }
  }));
}

TEST(ProcessTraining, AnExceptionOfOneProcessEndsTheOthersWithItsText) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kSetting, 2);
    LambdaCallback throws({.on_train_step_end = [&](RunContext& context) {
      if (context.global_step == 3) throw std::runtime_error("no more paper");
    }});
    if (rank == 0) {
      EXPECT_THROW(trained.model.Train(2, Rows(), {throws}).IgnoreError(), std::runtime_error);
      std::this_thread::sleep_for(std::chrono::seconds(2));
      return;
    }
    const absl::Status status = trained.model.Train(2, Rows(), {throws});
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_NE(status.message().find("has failed: an exception: no more paper"), std::string::npos) << status;
  }));
}

/// A user or a launcher signals any process. All stop at one step, and know the signal.
TEST(ProcessTraining, ASignalOfOneProcessStopsAllAtTheSameStep) {
  const std::string file = FilePath("checkpoint");
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kSetting, 2);
    /// Signals rank 1 in its fifth step.
    class Signaller : public Callback {
     public:
      explicit Signaller(int rank) : rank_(rank) {}
      bool RunsOnEveryRank() const override { return true; }
      void OnStepBegin(RunContext& context) override {
        if (rank_ == 1 && context.global_step == 4) ::raise(SIGTERM);
      }

     private:
      int rank_;
    } signaller(rank);
    OnRequestExit on_exit({.save_path = file});
    MPC_EXPECT_OK(trained.model.Train(2, Rows(), {signaller, on_exit}));
    EXPECT_EQ(on_exit.signal(), SIGTERM);
    EXPECT_EQ(trained.model.global_step(), 5);
  }));
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained resumed(kSetting, 2);
    MPC_EXPECT_OK(resumed.model.LoadCheckpoint(file).status());
    EXPECT_EQ(resumed.model.global_step(), 5);
  }));
  std::filesystem::remove(file);
}

TEST(ProcessTraining, RefusesAnEpochWithFewerBatchesThanProcesses) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kSetting, 2);
    const absl::Status status = trained.model.Train(1, GoodBatches(kImage, 1));
    EXPECT_EQ(status.message(), "an epoch has 1 batches, and 2 processes take one each a step");
  }));
}

/// Rank 0 alone has callbacks: what they ask for ends the run in all processes.
TEST(ProcessTraining, AStopOfRankZeroEndsTheRunOfAll) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kSetting, 2);
    LambdaCallback stop({.on_train_step_end = [&](RunContext& context) {
      EXPECT_EQ(rank, 0);
      if (context.global_step == 5) context.RequestStop();
    }});
    MPC_EXPECT_OK(trained.model.Train(2, Rows(), {stop}));
    EXPECT_EQ(trained.model.global_step(), 5);
  }));
}

TEST(ProcessTraining, WhatRankZeroMeasuresNeedsNoOtherProcess) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kSetting, 2);
    PrecisionProfiler profiler(trained.model, {.low = DType::kF16});
    MPC_EXPECT_OK(trained.model.Train(1, Rows(), {profiler}));
    EXPECT_EQ(profiler.profile().empty(), rank != 0);
  }));
}

TEST(ProcessTraining, AProcessThatIsKilledEndsTheOthersWithItsRank) {
  EXPECT_TRUE(RunGroup(2,
                       [&](int rank) {
                         Trained trained(kSetting, 2);
                         LambdaCallback end({.on_train_step_end = [&](RunContext& context) {
                           if (context.global_step == 3) ::raise(SIGKILL);
                         }});
                         const absl::Status status = trained.model.Train(2, Rows(), {end});
                         EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
                         EXPECT_NE(status.message().find("rank 0"), std::string::npos) << status;
                       },
                       /*killed=*/{0}));
}

}  // namespace
}  // namespace mpc::testing
