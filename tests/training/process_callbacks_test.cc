// What callbacks of rank 0 write and ask for, in every process of a group; and errors of evaluation in one of them.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "tests/training/process_group.h"

namespace mpc::testing {
namespace {

/// A Model that is evaluated.
struct Small {
  TwoLayers network;
  nn::CrossEntropyLoss loss;
  nn::Momentum momentum{network.TrainableParams(), {.learning_rate = 0.05, .momentum = 0.9}};
  Model model{network, loss, momentum, {.metrics = {"accuracy", "loss"}, .amp_level = "O0"}};
};

/// Four batches; `bad` of them has a label that is no class.
data::Dataset FewRows(std::int64_t bad = -1) {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 4; ++i) {
    std::vector<std::int32_t> labels = {0, 1, 2, 0, 1, 2, 0, 1};
    if (i == bad) labels[3] = 99;
    batches.push_back({Values({8, 6}, 100 + i), Tensor::From(labels, {8})});
  }
  return Batches(std::move(batches));
}

/// Trains in two processes, and expects one state in both.
void ExpectOneState(const std::function<void(Small& trained, int rank)>& train) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Small trained;
    train(trained, rank);
    Write(FilePath(absl::StrCat(rank)), StateOf(trained.model));
  }));
  const Snapshot first = Read(FilePath("0"));
  EXPECT_FALSE(first.empty());
  EXPECT_THAT(Differences(first, Read(FilePath("1"))), ::testing::IsEmpty());
}

void SetRate(RunContext& context, double rate) { MPC_EXPECT_OK(context.trained()->SetLearningRate(0, rate)); }

void HalveWeights(RunContext& context) {
  absl::StatusOr<TrainedModel::Weights> weights = context.trained()->CopyWeights();
  MPC_ASSERT_OK(weights.status());
  for (auto& [name, value] : *weights) {
    std::vector<float> halves = value.ToFloats();
    for (float& each : halves) each *= 0.5F;
    value = Tensor::From(halves, value.shape());
  }
  MPC_EXPECT_OK(context.trained()->SetWeights(*weights));
}

TEST(ProcessCallbacks, ARateThatIsSetWhereAnEpochBeginsIsThatOfAll) {
  ExpectOneState([](Small& trained, int rank) {
    LambdaCallback set({.on_train_epoch_begin = [](RunContext& context) {
      SetRate(context, 0.1 / static_cast<double>(context.epoch + 1));
    }});
    MPC_EXPECT_OK(trained.model.Train(2, FewRows(), {set}));
  });
}

TEST(ProcessCallbacks, WeightsThatAreSetWhereAnEpochEndsAreThoseOfAll) {
  ExpectOneState([](Small& trained, int rank) {
    LambdaCallback halve({.on_train_epoch_end = HalveWeights});
    MPC_EXPECT_OK(trained.model.Train(2, FewRows(), {halve}));
  });
}

TEST(ProcessCallbacks, WeightsThatAreSetWhereARunEndsAreThoseOfAll) {
  ExpectOneState([](Small& trained, int rank) {
    LambdaCallback halve({.on_train_end = HalveWeights});
    MPC_EXPECT_OK(trained.model.Train(1, FewRows(), {halve}));
  });
}

TEST(ProcessCallbacks, TheBestWeightsOfAnEarlyStopAreThoseOfAll) {
  ExpectOneState([](Small& trained, int rank) {
    // The evaluation of the first epoch stays the best.
    LambdaCallback spoil({.on_train_epoch_begin = [](RunContext& context) {
      if (context.epoch > 1) HalveWeights(context);
      SetRate(context, context.epoch > 1 ? 1.0 : 0.05);
    }});
    EarlyStopping stop({.monitor = "eval_loss", .patience = 1, .restore_best_weights = true});
    MPC_EXPECT_OK(trained.model.Fit(20, FewRows(), FewRows(), {}, {spoil, stop}));
    EXPECT_EQ(stop.stopped_epoch() > 0, rank == 0);
    EXPECT_LT(trained.model.global_step(), 40);
  });
}

TEST(ProcessCallbacks, RefusesWhatRankZeroWritesBetweenSteps) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Small trained;
    LambdaCallback set({.on_train_step_end = [](RunContext& context) { SetRate(context, 0.01); }});
    const absl::Status status = trained.model.Train(1, FewRows(), {set});
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("in OnStepEnd in rank 0 alone")) << status;
  }));
}

/// A callback of all ranks that sets a rate at the end of step 1; 0: it sets none.
struct SetsRate : Callback {
  explicit SetsRate(double rate) : rate(rate) {}
  bool RunsOnEveryRank() const override { return true; }
  void OnStepEnd(RunContext& context) override {
    if (context.global_step == 1 && rate > 0) SetRate(context, rate);
  }
  double rate;
};

TEST(ProcessCallbacks, RefusesWhatRankZeroWritesBetweenStepsBesideACallbackOfAllRanks) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Small trained;
    LambdaCallback set({.on_train_step_end = [](RunContext& context) { SetRate(context, 0.01); }});
    SetsRate none(0);
    const absl::Status status = trained.model.Train(1, FewRows(), {set, none});
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()),
                ::testing::ContainsRegex("rank 0 [a-z_.]*learning_rate[a-z_.0-9]* in OnStepEnd \\(hash "
                                         "[0-9a-f]+\\), rank 1 nothing"))
        << status;
    EXPECT_EQ(trained.model.global_step(), 1);
  }));
}

TEST(ProcessCallbacks, RefusesWhatAllRanksWriteBetweenStepsWithOtherValues) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Small trained;
    SetsRate set(rank == 0 ? 0.01 : 0.02);
    const absl::Status status = trained.model.Train(1, FewRows(), {set});
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("callbacks have written other state")) << status;
  }));
}

TEST(ProcessCallbacks, AnEqualWriteOfAllRanksBetweenStepsIsThatOfAll) {
  ExpectOneState([](Small& trained, int rank) {
    SetsRate set(0.01);
    MPC_EXPECT_OK(trained.model.Train(2, FewRows(), {set}));
  });
}

TEST(ProcessCallbacks, AHookThatTakesLongerThanTheTimeoutIsNamedWithTheOption) {
  const int port = FreePort();
  const std::string given_up = FilePath("given_up");
  EXPECT_TRUE(test::RunProcesses(2, [&](int rank) {
    MPC_EXPECT_OK(Join(rank, 2, port, {}, std::chrono::milliseconds(5000)));
    Small trained;
    LambdaCallback slow({.on_train_epoch_end = [&](RunContext&) {
      for (int wait = 0; wait < 200 && !std::filesystem::exists(given_up); ++wait) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    }});
    const absl::Status status = trained.model.Train(1, FewRows(), {slow});
    if (rank == 1) std::ofstream(given_up) << "rank 1 waits no longer";
    for (const char* part : {"rank 1 has waited 5000 ms in ", "rank 0 was last at step 2, \"OnEpochEnd of a callback\"",
                             "needs a larger distributed::Options::timeout"}) {
      EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(part)) << rank;
    }
    distributed::Finalize();
    return 0;
  }));
  std::filesystem::remove(given_up);
}

/// Long enough for a process to tell where it is, and for the others to hear it.
constexpr std::chrono::milliseconds kTwoBeats{4000};

void EndBySignal() {
  std::this_thread::sleep_for(kTwoBeats);
  ::kill(::getpid(), SIGKILL);
}

TEST(ProcessCallbacks, AProcessThatEndsInAHookIsNamedWithTheHook) {
  EXPECT_TRUE(RunGroup(2,
                       [&](int rank) {
                         Small trained;
                         LambdaCallback dies({.on_eval_begin = [](RunContext&) { EndBySignal(); }});
                         const absl::Status status = trained.model.Fit(1, FewRows(), FewRows(), {}, {dies});
                         EXPECT_THAT(std::string(status.message()),
                                     ::testing::HasSubstr("; it was last at step 2, \"OnEvalBegin of a callback\""));
                       },
                       /*killed=*/{0}));
}

TEST(ProcessCallbacks, AProcessThatEndsBehindARunIsNamedWithWhatItDid) {
  EXPECT_TRUE(RunGroup(
      2,
      [&](int rank) {
        Small trained;
        MPC_EXPECT_OK(trained.model.Train(1, FewRows()));
        if (rank == 1) EndBySignal();
        const absl::Status status = trained.model.Train(1, FewRows());
        EXPECT_THAT(std::string(status.message()),
                    ::testing::HasSubstr("has ended without a goodbye; it was last at step 2, \"what follows Train\""));
      },
      /*killed=*/{1}));
}

TEST(ProcessCallbacks, AProcessThatEndsInAnEvaluationBeforeAnyStepIsNamedWithIt) {
  EXPECT_TRUE(RunGroup(
      2,
      [&](int rank) {
        Small trained;
        const auto make = [] {
          return [] {
            EndBySignal();
            return absl::StatusOr<std::optional<data::Row>>(std::nullopt);
          };
        };
        const data::Dataset rows = rank == 0 ? FewRows() : data::GeneratorDataset(make, {"data", "label"});
        const absl::Status status = trained.model.Eval(rows).status();
        EXPECT_THAT(
            std::string(status.message()),
            ::testing::HasSubstr("without a goodbye; it had told of no step, and was last in \"an evaluation\""));
      },
      /*killed=*/{1}));
}

TEST(ProcessCallbacks, AStopWhereARunBeginsEndsItForAll) {
  ExpectOneState([](Small& trained, int rank) {
    LambdaCallback stop({.on_train_begin = [](RunContext& context) { context.RequestStop(); }});
    MPC_EXPECT_OK(trained.model.Train(2, FewRows(), {stop}));
    EXPECT_EQ(trained.model.global_step(), 0);
    MPC_EXPECT_OK(trained.model.Train(1, FewRows()));
    EXPECT_EQ(trained.model.global_step(), 2);
  });
}

/// A callback of all ranks that keeps the numbers with which an epoch begins.
struct KeepsPlace : Callback {
  bool RunsOnEveryRank() const override { return true; }
  void OnEpochBegin(RunContext& context) override { step = context.global_step; }
  std::int64_t step = -1;
};

TEST(ProcessCallbacks, ARunThatRankZeroResumesHasItsNumbersInAll) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    const std::string path = FilePath("checkpoint");
    Small first;
    MPC_EXPECT_OK(first.model.Train(1, FewRows()));
    MPC_EXPECT_OK(first.model.SaveCheckpoint(path));
    Small second;
    LambdaCallback resume(
        {.on_train_begin = [&](RunContext& context) { MPC_EXPECT_OK(context.trained()->Resume(path, context)); }});
    KeepsPlace place;
    MPC_EXPECT_OK(second.model.Train(2, FewRows(), {resume, place}));
    EXPECT_EQ(place.step, 2);
    if (rank == 0) std::filesystem::remove(path);
  }));
}

TEST(ProcessCallbacks, AnErrorOfEvaluationInOneRankIsOneOfAllAndTheNextEvaluationIsRight) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Small trained;
    MPC_EXPECT_OK(trained.model.Train(1, FewRows()));
    const absl::Status bad = trained.model.Eval(FewRows(/*bad=*/1)).status();
    EXPECT_FALSE(bad.ok());
    EXPECT_EQ(bad.message().find("rank 1 could not evaluate") != std::string::npos, rank == 0) << bad;
    const absl::StatusOr<std::map<std::string, double>> once = trained.model.Eval(FewRows());
    const absl::StatusOr<std::map<std::string, double>> again = trained.model.Eval(FewRows());
    MPC_ASSERT_OK(once.status());
    MPC_ASSERT_OK(again.status());
    EXPECT_EQ(*once, *again);
  }));
}

TEST(ProcessCallbacks, RefusesAPackageOfSeveralProcesses) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Small trained;
    const absl::Status status =
        trained.model.MakePackage({{"data", {DType::kF32, {8, 6}}}, {"label", {DType::kI32, {8}}}}).status();
    EXPECT_EQ(status.message(),
              "MakePackage: a package runs in one process, and this Model trains in 2; make it of a Model without "
              "SetAutoParallelContext");
  }));
}

TEST(ProcessCallbacks, AnArgumentOfFitThatOneRankRefusesEndsTheOthers) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Small trained;
    const FitOptions options{.valid_frequency = rank == 1 ? 0 : 1};
    const absl::Status status = trained.model.Fit(1, FewRows(), FewRows(), options);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("valid_frequency must be at least 1, got 0"));
  }));
}

TEST(ProcessCallbacks, ADiagnosisSpeaksOfTheRowsOfItsRank) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Small parts;
    Model model(parts.network, parts.loss, parts.momentum,
                {.amp_level = "O0",
                 .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 1}),
                 .max_consecutive_skips = 1});
    std::vector<data::Row> batches;
    for (std::int64_t i = 0; i < 8; ++i) {
      data::Row batch{Values({8, 6}, 100 + i), Tensor::From(std::vector<std::int32_t>(8, 1), {8})};
      batches.push_back(i % 2 == 1 ? WithBadValue(batch, kInfinity) : batch);
    }
    const std::string message(model.Train(1, Batches(std::move(batches))).message());
    EXPECT_THAT(message, ::testing::HasSubstr(rank == 0 ? "every value of the rows of rank 0 is finite at loss scale"
                                                        : "first value that is not finite at loss scale"));
  }));
}

TEST(ProcessCallbacks, NamesAnEvaluationThatOneRankAloneBegins) {
  EXPECT_TRUE(RunGroup(2, [&](int rank) {
    Small trained;
    MPC_EXPECT_OK(trained.model.Train(1, FewRows()));
    const absl::Status status = rank == 0 ? trained.model.Eval(FewRows()).status() : trained.model.Train(1, FewRows());
    EXPECT_THAT(std::string(status.message()),
                ::testing::HasSubstr(rank == 0 ? "rank 1 sends the settings of Train or Fit"
                                               : "rank 0 sends the end of an evaluation"));
  }));
}

}  // namespace
}  // namespace mpc::testing
