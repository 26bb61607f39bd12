// Training in several processes: the state of all has the bits of one process that accumulates, whatever happens.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

#include "absl/strings/str_cat.h"
#include "mpc/distributed.h"
#include "tests/runtime/processes.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

using test::RunProcesses;

const Shape kImage = {2, 6, 6};

std::string TestName() {
  const ::testing::TestInfo& info = *::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = absl::StrCat(info.test_suite_name(), ".", info.name());
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

std::string FilePath(const std::string& name) {
  return (std::filesystem::temp_directory_path() / absl::StrCat(TestName(), ".", name)).string();
}

void Write(const std::string& path, const Snapshot& snapshot) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& [name, bytes] : snapshot) {
    file << name << '\n' << bytes.size() << '\n';
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

Snapshot Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  Snapshot snapshot;
  std::string name, size;
  while (std::getline(file, name) && std::getline(file, size)) {
    std::vector<std::uint8_t>& bytes = snapshot[name];
    bytes.resize(std::stoul(size));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  std::filesystem::remove(path);
  return snapshot;
}

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

/// A port of this machine that nothing listens on.
int FreePort() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ::close(descriptor);
  return ntohs(address.sin_port);
}

/// Makes this process rank `rank` of `size`, which one thread computes.
absl::Status Join(int rank, int size, int port) {
  if (absl::Status status = SetContext({.num_threads = 1}); !status.ok()) return status;
  SetSeed(7);
  if (absl::Status status = SetAutoParallelContext({.parallel_mode = ParallelMode::kDataParallel}); !status.ok()) {
    return status;
  }
  distributed::Options options;
  options.rank = rank;
  options.size = size;
  options.address = absl::StrCat("127.0.0.1:", port);
  return distributed::Init(options);
}

/// Runs `body` in `size` processes that have joined.
::testing::AssertionResult RunGroup(int size, const std::function<void(int rank)>& body,
                                    const std::vector<int>& killed = {}) {
  const int port = FreePort();
  return RunProcesses(
      size,
      [&](int rank) {
        MPC_EXPECT_OK(Join(rank, size, port));
        if (!::testing::Test::HasFailure()) body(rank);
        distributed::Finalize();
        return 0;
      },
      killed);
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

const Setting kSetting{{"O2", DType::kF16}};

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

TEST(ProcessTraining, NamesTheOptionByWhichProgramsDifferBeforeAStepHasRun) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
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
