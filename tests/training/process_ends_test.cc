// What ends training in several processes, or refuses to begin it: differences, errors, signals, processes that are
// gone.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "frontend/train/process_training.h"
#include "tests/training/process_model.h"

namespace mpc::testing {
namespace {

TEST(ProcessEnds, RefusesWhatAccumulationInProcessesCannotDo) {
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
  EXPECT_TRUE(RunGroup(3, [&](int rank) {
    EXPECT_EQ(Trained(kSetting, 3).model.status().message(),
              "the number of processes is 3; where training is data parallel accepted are powers of two, so that any "
              "number of processes adds gradients in one order");
  }));
}

TEST(ProcessEnds, NamesWhatDiffersBetweenProcesses) {
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

TEST(ProcessEnds, NamesTheAccumulationThatAProcessWasGiven) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Setting setting = kSetting;
    setting.micro_batches = rank == 0 ? 2 : 4;
    Trained trained(setting, 2);
    EXPECT_EQ(trained.model.Train(1, Rows()).message(),
              "processes that train together differ: rank 0 has \"accumulation_steps: 1\", rank 1 has "
              "\"accumulation_steps: 2\"");
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

TEST(ProcessEnds, NamesSeedsThatDiffer) {
  ExpectDifference([] { SetSeed(8); }, Rows(), "rank 0 has \"seed: 7\", rank 1 has \"seed: 8\"");
}

TEST(ProcessEnds, NamesDataSetsThatDiffer) {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 24; ++i) batches.push_back(MakeBatch(kImage, 8, i + 1));
  ExpectDifference(
      [] {}, Batches(std::move(batches)),
      "processes that train together differ: rank 0 has \"first batch of the data set: tensor<8x2x6x6xf32> "
      "hash ");
  ExpectDifference([] {}, Rows().Take(22),
                   "rank 0 has \"batches of an epoch: 24\", rank 1 has \"batches of an epoch: 22\"");
}

TEST(ProcessEnds, NamesASettingThatOneProcessLacks) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"b: 2", "c: 3"}, "a: rank 0 has 1, rank 1 has none"},
      {{"a: 1", "x: 9", "b: 2", "c: 3"}, "x: rank 0 has none, rank 1 has 9"},
      {{"x: 9", "a: 1", "c: 4", "b: 2"}, "rank 0 has \"c: 3\", rank 1 has \"c: 4\""},
      {{"a: 1", "b: 2", "c: 3", "c: 5"}, "c #2: rank 0 has none, rank 1 has 5"},
  };
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    const std::vector<std::string> settings = {"a: 1", "b: 2", "c: 3"};
    const internal::ProcessTraining processes = internal::ProcessTraining::FromContext();
    MPC_EXPECT_OK(processes.CompareSettings(settings));
    for (const auto& [other, difference] : cases) {
      EXPECT_EQ(processes.CompareSettings(rank == 0 ? settings : other).message(),
                "processes that train together differ: " + difference);
    }
    // Another order is no difference.
    MPC_EXPECT_OK(processes.CompareSettings(rank == 0 ? settings : std::vector<std::string>{"c: 3", "a: 1", "b: 2"}));
  }));
}

/// What one process may be given otherwise than the others.
struct Choices {
  double learning_rate = 0.05;
  DynamicLossScaleOptions scaling = {.init_loss_scale = 1024};
  double max_loss_scale = 0x1p126;
  ModelOptions options;
  FitOptions fit;
  data::Dataset validation = Rows();
};

/// The error of two processes, of which rank 1 has been changed by `change`.
void ExpectRefused(const std::function<void(Choices&)>& change, const std::string& difference) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Choices choices;
    choices.options.metrics = {"accuracy", {"top", TopK(2)}};
    if (rank == 1) change(choices);
    LossScaleConfig scaling = DynamicLossScaleManager(choices.scaling).config();
    scaling.maximum = choices.max_loss_scale;
    choices.options.loss_scale_manager = scaling;
    ConvNorm network;
    nn::SoftmaxCrossEntropyWithLogits loss;
    nn::Momentum momentum(network.TrainableParams(), {.learning_rate = choices.learning_rate, .momentum = 0.9});
    Model model(network, loss, momentum, choices.options);
    const absl::Status status = model.Fit(2, Rows(), choices.validation, choices.fit);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(status.message().substr(0, difference.size()), difference) << status;
    EXPECT_EQ(model.global_step(), 0);
  }));
}

TEST(ProcessEnds, NamesWhatFitIsGivenOtherwise) {
  const std::string differ = "processes that train together differ: rank 0 has ";
  ExpectRefused(
      [](Choices& other) {
        other.fit.valid_frequency = {1, 2};
      },
      differ + "\"valid_frequency: every 1 epochs\", rank 1 has \"valid_frequency: epochs 1, 2\"");
  ExpectRefused(
      [](Choices& other) {
        other.options.metrics = {"accuracy", {"top", TopK(3)}};
      },
      differ +
          "\"metrics: accuracy = TopK(k = 1), top = TopK(k = 2), loss = Loss\", rank 1 has \"metrics: "
          "accuracy = TopK(k = 1), top = TopK(k = 3), loss = Loss\"");
  ExpectRefused([](Choices& other) { other.validation = Rows().Take(3); },
                differ + "\"batches of a validation: 24\", rank 1 has \"batches of a validation: 3\"");
  ExpectRefused(
      [](Choices& other) {
        std::vector<data::Row> batches;
        for (std::int64_t i = 0; i < 24; ++i) batches.push_back(MakeBatch(kImage, 8, i + 1));
        other.validation = Batches(std::move(batches));
      },
      differ + "\"first batch of a validation: tensor<8x2x6x6xf32> hash ");
}

TEST(ProcessEnds, NamesRatesAndScalingThatProcessesWereMadeWith) {
  const std::string differ = "processes that train together differ: rank 0 has ";
  ExpectRefused([](Choices& other) { other.learning_rate = 0.5; },
                differ + "\"learning_rate: 0.05\", rank 1 has \"learning_rate: 0.5\"");
  ExpectRefused([](Choices& other) { other.scaling.init_loss_scale = 512; },
                differ + "\"loss scale at first: 1024\", rank 1 has \"loss scale at first: 512\"");
  ExpectRefused([](Choices& other) { other.scaling.scale_window = 3; },
                differ + "\"loss scale growth interval: 2000\", rank 1 has \"loss scale growth interval: 3\"");
  ExpectRefused([](Choices& other) { other.max_loss_scale = 4096; }, differ + "\"loss scale maximum: ");
  ExpectRefused([](Choices& other) { other.options.max_consecutive_skips = 1; },
                differ + "\"max_consecutive_skips: 20\", rank 1 has \"max_consecutive_skips: 1\"");
}

/// A file has other rates and scales than processes were made with. Rank 0 alone loads it.
TEST(ProcessEnds, WhatAFileOrACallSetsIsNotComparedAndIsRankZeros) {
  const std::string file = FilePath("checkpoint");
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kOneEach, 2);
    MPC_EXPECT_OK(trained.momentum.SetLearningRate(rank == 0 ? 0.01 : 0.5));
    MPC_EXPECT_OK(trained.model.Train(1, Rows()));
    MPC_EXPECT_OK(trained.model.SaveCheckpoint(file));
    EXPECT_NE(trained.model.loss_scale(), 1024);
    Trained resumed(kOneEach, 2);
    if (rank == 0) MPC_EXPECT_OK(resumed.model.LoadCheckpoint(file, {.continue_run = false}).status());
    MPC_EXPECT_OK(resumed.model.Train(1, Rows()));
    EXPECT_FLOAT_EQ(static_cast<float>(*resumed.momentum.learning_rate(0)), 0.01f);
  }));
  std::filesystem::remove(file);
}

TEST(ProcessEnds, NamesTheOptionByWhichProgramsDifferBeforeAStepHasRun) {
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

TEST(ProcessEnds, AnErrorOfOneProcessEndsTheOthersWithItsText) {
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

TEST(ProcessEnds, AnExceptionOfOneProcessEndsTheOthersWithItsText) {
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
TEST(ProcessEnds, ASignalOfOneProcessStopsAllAtTheSameStep) {
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

TEST(ProcessEnds, RefusesAnEpochWithFewerBatchesThanProcesses) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kOneEach, 2);
    const absl::Status status = trained.model.Train(1, GoodBatches(kImage, 1));
    // Who comes late hears of the other one's error.
    EXPECT_NE(status.message().find("an epoch has 1 batches, and 2 processes take one each a step"), std::string::npos)
        << status;
  }));
}

TEST(ProcessEnds, RefusesAnEpochWhoseOnlyUpdateEndsInAShorterBatch) {
  std::vector<data::Row> rows;
  for (int i = 0; i < 10; ++i) rows.push_back({Values(kImage, i), Tensor::From({1, 0, 0}, {3})});
  const data::Dataset batches = data::GeneratorDataset(std::move(rows), {"data", "label"}).Batch(8).Repeat(2);
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Trained trained(kSetting, 2);
    const absl::Status status = trained.model.Train(1, batches);
    // Who comes late hears of the other one's error.
    EXPECT_NE(status.message().find("the last batch of an epoch has fewer rows than the others of its step, which 4 "
                                    "batches make, so that the step is left out: no step is left"),
              std::string::npos)
        << status;
  }));
}

/// Rank 0 alone has callbacks: what they ask for ends the run in all processes.
TEST(ProcessEnds, AStopOfRankZeroEndsTheRunOfAll) {
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

TEST(ProcessEnds, AProcessThatIsKilledEndsTheOthersWithItsRank) {
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
