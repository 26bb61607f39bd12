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

/// The Model of one process of `processes`, each of which accumulates its part of the micro-batches.
struct Trained {
  Trained(const Setting& setting, int processes)
      : model(network, loss, optimizer(setting.rule),
              {.amp_level = setting.level.level,
               .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 1024, .scale_window = 3}),
               .amp_dtype = setting.level.dtype,
               .accumulation_steps = setting.micro_batches / processes,
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
Snapshot TrainIn(int processes, const Setting& setting, const data::Dataset& rows) {
  EXPECT_TRUE(RunGroup(processes, [&](int rank) {
    Trained trained(setting, processes);
    MPC_EXPECT_OK(trained.model.Train(2, rows));
    EXPECT_GT(trained.model.skipped_steps(), 0);
    // What a process sums over its own micro-batches is its own.
    Write(FilePath(absl::StrCat(rank)), WithoutAccumulators(StateOf(trained.model)));
  }));
  Snapshot first = Read(FilePath("0"));
  for (int rank = 1; rank < processes; ++rank) {
    EXPECT_EQ(Differences(first, Read(FilePath(absl::StrCat(rank)))), std::vector<std::string>{}) << rank;
  }
  EXPECT_GT(first.size(), 10U);
  return first;
}

class ProcessTraining : public ::testing::TestWithParam<Level> {};

TEST_P(ProcessTraining, HasTheBitsOfOneProcessThatAccumulates) {
  for (const Rule rule : {Rule::kMomentum, Rule::kLamb}) {
    const Setting setting{GetParam(), rule};
    const Snapshot alone = TrainIn(1, setting, Rows());
    for (const int processes : {2, 4}) {
      EXPECT_EQ(Differences(alone, TrainIn(processes, setting, Rows())), std::vector<std::string>{}) << processes;
    }
  }
}

/// Several sums of a process each, and as many processes as micro-batches of an update.
TEST_P(ProcessTraining, HasTheSameBitsForOtherNumbersOfMicroBatches) {
  for (const auto& [micro_batches, processes] : {std::pair(8, 2), std::pair(2, 2)}) {
    const Setting setting{GetParam(), Rule::kMomentum, micro_batches};
    EXPECT_EQ(Differences(TrainIn(1, setting, Rows()), TrainIn(processes, setting, Rows())), std::vector<std::string>{})
        << micro_batches;
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
/// One micro-batch in each of two processes.
const Setting kOneEach{{"O2", DType::kF16}, Rule::kMomentum, 2};

/// Without a scaler nothing is skipped, and every update moves all state.
TEST(ProcessTraining, HasTheSameBitsWithoutAScaler) {
  const auto train = [](int processes) {
    EXPECT_TRUE(RunGroup(processes, [&](int rank) {
      ConvNorm network;
      nn::SoftmaxCrossEntropyWithLogits loss;
      nn::Momentum momentum(network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9});
      Model model(network, loss, momentum, {.accumulation_steps = 4 / processes});
      MPC_EXPECT_OK(model.Train(2, GoodBatches(kImage, 8)));
      EXPECT_EQ(model.global_step(), 4);
      if (rank == 0) Write(FilePath("state"), WithoutAccumulators(StateOf(model)));
    }));
    return Read(FilePath("state"));
  };
  const Snapshot alone = train(1);
  for (const int processes : {2, 4}) EXPECT_EQ(Differences(alone, train(processes)), std::vector<std::string>{});
}

/// The last three of 27 batches make no update, whatever the number of processes.
TEST(ProcessTraining, LeavesOutTheSameBatchesInAnyNumberOfProcesses) {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 27; ++i) batches.push_back(MakeBatch(kImage, 8, i));
  batches[9] = WithBadValue(batches[9], kInfinity);
  const data::Dataset rows = Batches(std::move(batches));
  const Snapshot alone = TrainIn(1, kSetting, rows);
  for (const int processes : {2, 4}) {
    EXPECT_EQ(Differences(alone, TrainIn(processes, kSetting, rows)), std::vector<std::string>{}) << processes;
  }
}

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
    Trained trained(kOneEach, 2);
    EXPECT_EQ(trained.model.Train(1, Rows()).message(),
              "processes that train together differ: rank 0 has \"bucket_mib: 25\", rank 1 has \"bucket_mib: 26\"");
  }));
}

TEST(ProcessTraining, ARunContinuesInAnotherNumberOfProcesses) {
  const std::string file = FilePath("checkpoint");
  // A run that stops is asked to in the first step of an update of epoch 2. The update ends.
  const auto train = [&](int processes, bool resumes, bool stops) {
    return RunGroup(processes, [&](int rank) {
      Trained trained(kSetting, processes);
      // Rank 0 sends what it has loaded.
      if (resumes && rank == 0) MPC_EXPECT_OK(trained.model.LoadCheckpoint(file).status());
      LambdaCallback stop({.on_train_step_begin = [&](RunContext& context) {
        if (stops && context.global_step == 8) context.RequestStop();
      }});
      MPC_EXPECT_OK(trained.model.Train(2, Rows(), {stop}));
      EXPECT_EQ(trained.model.global_step(), stops ? 9 : 12);
      MPC_EXPECT_OK(trained.model.SaveCheckpoint(file));
      if (rank == 0) Write(FilePath("state"), WithoutAccumulators(StateOf(trained.model)));
    });
  };
  ASSERT_TRUE(train(2, /*resumes=*/false, /*stops=*/false));
  const Snapshot whole = Read(FilePath("state"));
  for (const auto& [first, then] : {std::pair(1, 4), std::pair(4, 2), std::pair(2, 1)}) {
    ASSERT_TRUE(train(first, false, true));
    ASSERT_TRUE(train(then, true, false));
    EXPECT_EQ(Differences(whole, Read(FilePath("state"))), std::vector<std::string>{}) << first << " then " << then;
  }
  std::filesystem::remove(file);
}

TEST(ProcessTraining, SavesBehindACompleteUpdateAlone) {
  const std::string file = FilePath("checkpoint");
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kSetting, 2);
    int saved = 0;
    LambdaCallback save({.on_train_step_end = [&](RunContext& context) {
      const absl::Status status = context.SaveCheckpoint(file);
      if (context.step_in_epoch % 2 == 0) {
        MPC_EXPECT_OK(status);
        ++saved;
        return;
      }
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_EQ(status.message(),
                absl::StrCat(file, ": step 1 of 2 of an update has ended, and where training is data parallel a ",
                             "checkpoint has complete updates; save when global_step has moved"));
    }});
    MPC_EXPECT_OK(trained.model.Train(1, Rows(), {save}));
    EXPECT_EQ(saved, rank == 0 ? 6 : 0);
  }));
  std::filesystem::remove(file);
}

/// One process that trains for itself may save inside an update.
TEST(ProcessTraining, BeginsAtACompleteUpdateAlone) {
  const std::string file = FilePath("checkpoint");
  const auto save = [&](std::int64_t batches) {
    return test::RunProcesses(1, [&](int) {
      MPC_EXPECT_OK(SetContext({.num_threads = 1}));
      Trained trained(kSetting, 1);
      MPC_EXPECT_OK(trained.model.Train(1, GoodBatches(kImage, batches)));
      MPC_EXPECT_OK(trained.model.SaveCheckpoint(file));
      return 0;
    });
  };
  const auto load_error = [&] {
    Trained trained(kSetting, 2);
    return std::string(trained.model.LoadCheckpoint(file).status().message());
  };
  ASSERT_TRUE(save(7));
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    EXPECT_EQ(load_error(), absl::StrCat(file, " was saved behind 3 batches of an update that is not complete; where ",
                                         "training is data parallel a run begins at a complete update"));
  }));
  ASSERT_TRUE(save(8));
  EXPECT_TRUE(RunGroup(2, [&](int rank) { EXPECT_EQ(load_error(), ""); }));
  std::filesystem::remove(file);
}

TEST(ProcessTraining, RefusesWhatAccumulationInProcessesCannotDo) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Setting setting = kSetting;
    setting.micro_batches = 6;
    Trained three(setting, 2);
    EXPECT_EQ(three.model.status().message(),
              "accumulation_steps is 3; where training is data parallel accepted are powers of two, so that any number "
              "of processes adds gradients in one order");
    Trained two(kSetting, 2);
    const absl::Status status = two.model.Train(1, GoodBatches(kImage, 3));
    EXPECT_NE(status.message().find("an epoch has 3 batches, and 2 processes take 2 each an update"), std::string::npos)
        << status;
    EXPECT_EQ(two.model.LoadTrainStep(MakeBatch(kImage, 8, 0)).status().message(),
              "LoadTrainStep: an update of 2 processes with 2 steps each runs two Programs, and one is accepted; give "
              "accumulation_steps = 1, or one process");
  }));
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
    Trained trained(kOneEach, 2);
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

/// The norm of means is bad in all processes where the gradient of one is.
TEST(ProcessTraining, AnOverflowThatClippingSeesIsThatOfTheGradient) {
  for (const auto& [micro_batches, processes] : {std::pair(4, 1), std::pair(2, 2), std::pair(4, 2), std::pair(4, 4)}) {
    Setting setting = kSetting;
    setting.micro_batches = micro_batches;
    EXPECT_TRUE(RunGroup(processes, [&](int rank) {
      Trained trained(setting, processes);
      ::testing::internal::CaptureStderr();
      MPC_EXPECT_OK(trained.model.Train(1, Rows()));
      const std::string said = ::testing::internal::GetCapturedStderr();
      EXPECT_EQ(said.find(": the gradient of ") != std::string::npos, rank == 0) << said;
      EXPECT_EQ(said.find("the norm"), std::string::npos) << said;
    }));
  }
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
    Trained trained(kOneEach, 2);
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
    Trained trained(kOneEach, 2);
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
    Trained trained(kOneEach, 2);
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
    Trained trained(kOneEach, 2);
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
    Trained resumed(kOneEach, 2);
    MPC_EXPECT_OK(resumed.model.LoadCheckpoint(file).status());
    EXPECT_EQ(resumed.model.global_step(), 5);
  }));
  std::filesystem::remove(file);
}

TEST(ProcessTraining, RefusesAnEpochWithFewerBatchesThanProcesses) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kOneEach, 2);
    const absl::Status status = trained.model.Train(1, GoodBatches(kImage, 1));
    // Who comes late hears of the other one's error.
    EXPECT_NE(status.message().find("an epoch has 1 batches, and 2 processes take one each a step"), std::string::npos)
        << status;
  }));
}

/// Rank 0 alone has callbacks: what they ask for ends the run in all processes.
TEST(ProcessTraining, AStopOfRankZeroEndsTheRunOfAll) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kOneEach, 2);
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
    Trained trained(kOneEach, 2);
    PrecisionProfiler profiler(trained.model, {.low = DType::kF16});
    MPC_EXPECT_OK(trained.model.Train(1, Rows(), {profiler}));
    EXPECT_EQ(profiler.profile().empty(), rank != 0);
  }));
}

TEST(ProcessTraining, AProcessThatIsKilledEndsTheOthersWithItsRank) {
  EXPECT_TRUE(RunGroup(2,
                       [&](int rank) {
                         Trained trained(kOneEach, 2);
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
