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
#include "tests/training/process_model.h"

namespace mpc::testing {
namespace {

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

/// Batches of an update may differ in their rows, and so do variances of theirs. State has the same bits in all.
TEST(ProcessTraining, HasTheSameBitsForBatchesOfDifferentSizes) {
  constexpr std::int64_t kSizes[] = {8, 2, 5, 8, 8, 3};
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 24; ++i) batches.push_back(MakeBatch(kImage, kSizes[i % 6], i));
  batches[9] = WithBadValue(batches[9], kInfinity);
  const data::Dataset rows = Batches(std::move(batches));
  for (const std::int64_t micro_batches : {2, 4}) {
    const Setting setting{{"O2", DType::kF16}, Rule::kMomentum, micro_batches};
    const Snapshot alone = TrainIn(1, setting, rows);
    for (int processes = 2; processes <= micro_batches; processes *= 2) {
      EXPECT_EQ(Differences(alone, TrainIn(processes, setting, rows)), std::vector<std::string>{})
          << processes << " of " << micro_batches;
    }
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

/// One rank alone reads an infinity. Nobody moves anything but the scaler, which halves its scale once.
TEST(ProcessTraining, AnInfinityOfOneRankSkipsTheUpdateOfAll) {
  for (const std::size_t bad : {0, 1, 3}) {
    EXPECT_TRUE(RunGroup(4, [&](int rank) {
      Trained trained(kSetting, 4);
      MPC_EXPECT_OK(trained.model.Train(1, GoodBatches(kImage, 8)));
      const Snapshot before = StateOf(trained.model);
      const double scale = StateItem(trained.model, "scaler.scale");
      std::vector<data::Row> batches;
      for (std::int64_t i = 0; i < 4; ++i) batches.push_back(MakeBatch(kImage, 8, i));
      batches[bad] = WithBadValue(batches[bad], kInfinity);
      MPC_EXPECT_OK(trained.model.Train(1, Batches(std::move(batches))));
      EXPECT_EQ(trained.model.skipped_steps(), 1);
      EXPECT_EQ(StateItem(trained.model, "scaler.scale"), scale / 2);
      for (const std::string& name : Differences(before, StateOf(trained.model))) {
        EXPECT_EQ(name.rfind("scaler.", 0), 0U) << "rank " << rank << ": " << name;
      }
    })) << bad;
  }
}

TEST(ProcessTraining, WhatRankZeroMeasuresNeedsNoOtherProcess) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kOneEach, 2);
    PrecisionProfiler profiler(trained.model, {.low = DType::kF16});
    MPC_EXPECT_OK(trained.model.Train(1, Rows(), {profiler}));
    EXPECT_EQ(profiler.profile().empty(), rank != 0);
  }));
}

}  // namespace
}  // namespace mpc::testing
