// Model::Train on a device that is behind the host: what the callbacks see and what is left are those of the CPU.
#include <gmock/gmock.h>

#include "absl/strings/str_format.h"
#include "frontend/state/step_capsule.h"
#include "kernels/cpu/kernel.h"
#include "models/dcgan.h"
#include "runtime/step_groups.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/asynchronous_device.h"
#include "tests/training/resume_support.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kSteps = 7;  ///< of an epoch: no multiple of the steps of a launch

/// The context of a test; the CPU's comes back after it.
class OnDevice {
 public:
  // Without fusion, which regroups the sums and which a device called "cuda" has only if asked for.
  explicit OnDevice(ContextOptions options) {
    options.fusion = false;
    MPC_EXPECT_OK(SetContext(options));
  }
  ~OnDevice() { MPC_EXPECT_OK(SetContext({})); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
};

/// Writes down what each hook is told.
class Protocol : public Callback {
 public:
  void OnEpochBegin(RunContext& context) override { Add(absl::StrFormat("epoch %d", context.epoch)); }
  void OnStepBegin(RunContext& context) override {
    begins.push_back(absl::StrFormat("%d.%d after %d", context.epoch, context.step_in_epoch, context.global_step));
    all.push_back("begin " + begins.back());
  }
  void OnStepEnd(RunContext& context) override {
    const float first = (*context.batch())[0].ToFloats()[1];
    Add(absl::StrFormat("%d.%d step %d loss %.9g scale %g skipped %d%s batch %.9g", context.epoch,
                        context.step_in_epoch, context.global_step, context.loss(), context.loss_scale,
                        context.skipped_steps, context.overflow ? " overflow" : "", first));
  }
  void OnEpochEnd(RunContext& context) override {
    Add(absl::StrFormat("end of epoch %d: step %d", context.epoch, context.global_step));
  }
  void OnTrainEnd(RunContext& context) override { Add(absl::StrFormat("end: step %d", context.global_step)); }

  std::vector<std::string> begins, ends, all;

 private:
  void Add(const std::string& line) {
    ends.push_back(line);
    all.push_back(line);
  }
};

struct RunResult {
  Protocol protocol;
  Snapshot state;
  std::int64_t global_step = 0;
  float predicted = 0;
};

const DynamicLossScaleManager kScale{{.init_loss_scale = 1024, .scale_window = 4}};

RunResult TrainOn(const ContextOptions& context, const data::Dataset& dataset, std::int64_t accumulation_steps = 1) {
  const OnDevice device(context);
  RunResult result;
  Training<ConvNorm> training({"O2", DType::kF16}, kScale, {.learning_rate = 0.05}, {}, accumulation_steps);
  MPC_EXPECT_OK(training.model->Train(2, dataset, {result.protocol}));
  result.state = StateOf(*training.model);
  result.global_step = training.model->global_step();
  const absl::StatusOr<Tensor> predicted = training.model->Predict(Values({2, 2, 6, 6}));
  MPC_EXPECT_OK(predicted.status());
  if (predicted.ok()) result.predicted = predicted->ToFloats()[0];
  return result;
}

class StepsPerLaunch : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { UseAsynchronousDevice(); }
  ContextOptions Cuda() const { return {.device = "cuda", .steps_per_launch = GetParam()}; }
};

TEST_P(StepsPerLaunch, CallbacksAndStateAreThoseOfTheCpu) {
  const RunResult cpu = TrainOn({}, ShuffledBatches(kSteps));
  const RunResult cuda = TrainOn(Cuda(), ShuffledBatches(kSteps));
  EXPECT_EQ(cpu.protocol.ends, cuda.protocol.ends);
  EXPECT_EQ(cpu.protocol.begins, cuda.protocol.begins);
  EXPECT_EQ(Differences(cpu.state, cuda.state), std::vector<std::string>{});
  EXPECT_EQ(cpu.global_step, cuda.global_step);
  EXPECT_EQ(cpu.predicted, cuda.predicted);
}

TEST_P(StepsPerLaunch, OverflowsAreToldAtTheirStep) {
  const RunResult cpu = TrainOn({}, ShuffledBatches(kSteps, 3));
  const RunResult cuda = TrainOn(Cuda(), ShuffledBatches(kSteps, 3));
  EXPECT_THAT(cpu.protocol.ends, ::testing::Contains(HasSubstr("overflow")));
  EXPECT_EQ(cpu.protocol.ends, cuda.protocol.ends);
  EXPECT_EQ(Differences(cpu.state, cuda.state), std::vector<std::string>{});
}

TEST_P(StepsPerLaunch, MicroStepsAreCountedAhead) {
  const RunResult cpu = TrainOn({}, ShuffledBatches(kSteps, 2), 3);
  const RunResult cuda = TrainOn(Cuda(), ShuffledBatches(kSteps, 2), 3);
  EXPECT_EQ(cpu.global_step, 2 * kSteps / 3);
  EXPECT_EQ(cpu.protocol.ends, cuda.protocol.ends);
  EXPECT_EQ(cpu.protocol.begins, cuda.protocol.begins);
  EXPECT_EQ(Differences(cpu.state, cuda.state), std::vector<std::string>{});
}

TEST_P(StepsPerLaunch, TheHostNeverReadsStateWhileTraining) {
  const OnDevice device(Cuda());
  AsynchronousDeviceControl& control = UseAsynchronousDevice();
  Training<ConvNorm> training({"O2", DType::kF16}, kScale);
  LossRecorder losses;
  MPC_ASSERT_OK(training.model->Train(2, GoodBatches({2, 6, 6}, kSteps), {losses}));
  EXPECT_EQ(losses.losses.size(), 2u * kSteps);
  EXPECT_EQ(control.downloads, 0);
  std::vector<std::size_t> launches;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (std::int64_t left = kSteps; left > 0; left -= GetParam()) {
      launches.push_back(static_cast<std::size_t>(std::min<std::int64_t>(left, GetParam())));
    }
  }
  EXPECT_EQ(control.launches, launches);
  // While one launch waits to be run, the next one is given: the uploads before the first come on top.
  EXPECT_GE(control.most_waiting, 2u * static_cast<std::size_t>(GetParam()));
}

TEST_P(StepsPerLaunch, ACheckpointAtAStepHoldsExactlyItsSteps) {
  const TemporaryFolder folder;
  {
    const OnDevice device(Cuda());
    Training<ConvNorm> training({"O2", DType::kF16}, kScale);
    ModelCheckpoint saver({.directory = folder.path(), .save_checkpoint_steps = 4, .keep_checkpoint_max = 0});
    MPC_ASSERT_OK(training.model->Train(2, ShuffledBatches(kSteps), {saver}));
  }
  const RunResult whole = TrainOn({}, ShuffledBatches(kSteps));
  for (const std::int64_t step : {4, 8, 12}) {
    SCOPED_TRACE(step);
    const std::string path = CheckpointPath(folder.path(), kCheckpointPrefix, step);
    Training<ConvNorm> stopped({"O2", DType::kF16}, kScale);
    class StopAt : public Callback {
     public:
      explicit StopAt(std::int64_t step) : step_(step) {}
      void OnStepEnd(RunContext& context) override {
        if (context.global_step == step_) context.RequestStop();
      }

     private:
      std::int64_t step_;
    } stop(step);
    MPC_ASSERT_OK(stopped.model->Train(2, ShuffledBatches(kSteps), {stop}));
    Training<ConvNorm> loaded({"O2", DType::kF16}, kScale);
    absl::StatusOr<ResumeReport> report = loaded.model->LoadCheckpoint(path);
    MPC_ASSERT_OK(report.status());
    EXPECT_EQ(report->global_step, step);
    EXPECT_EQ(Differences(StateOf(*stopped.model), StateOf(*loaded.model)), std::vector<std::string>{});
    // Resumed on the device it ends where the run that never stopped did.
    const OnDevice device(Cuda());
    Training<ConvNorm> resumed({"O2", DType::kF16}, kScale);
    MPC_ASSERT_OK(resumed.model->LoadCheckpoint(path).status());
    MPC_ASSERT_OK(resumed.model->Train(2, ShuffledBatches(kSteps)));
    EXPECT_EQ(Differences(whole.state, StateOf(*resumed.model)), std::vector<std::string>{});
  }
}

TEST_P(StepsPerLaunch, ACheckpointThatNobodyAnnouncedIsOfTheStepsThatItHolds) {
  const TemporaryFolder folder;
  const RunResult whole = TrainOn({}, ShuffledBatches(kSteps));
  const OnDevice device(Cuda());
  Training<ConvNorm> training({"O2", DType::kF16}, kScale);
  SaveAt saver(3, folder / "saved");
  MPC_ASSERT_OK(training.model->Train(2, ShuffledBatches(kSteps), {saver}));
  Training<ConvNorm> resumed({"O2", DType::kF16}, kScale);
  absl::StatusOr<ResumeReport> report = resumed.model->LoadCheckpoint(folder / "saved");
  MPC_ASSERT_OK(report.status());
  EXPECT_GE(report->global_step, 3);
  EXPECT_EQ(static_cast<double>(report->global_step), StateItem(*resumed.model, "optimizer.step"));
  MPC_ASSERT_OK(resumed.model->Train(2, ShuffledBatches(kSteps)));
  EXPECT_EQ(Differences(whole.state, StateOf(*resumed.model)), std::vector<std::string>{});
}

TEST_P(StepsPerLaunch, AStopEndsTheStepsThatHaveBegun) {
  class StopAt : public Callback {
   public:
    StopAt(std::int64_t step, bool exactly) : step_(step), exactly_(exactly) {}
    bool NeedsState(const RunContext& context) const override { return exactly_ && context.global_step + 1 == step_; }
    void OnStepEnd(RunContext& context) override {
      if (context.global_step == step_) context.RequestStop();
      ++ends;
    }
    void OnTrainEnd(RunContext& context) override { ended_at = context.global_step; }
    std::int64_t ends = 0;
    std::int64_t ended_at = 0;

   private:
    std::int64_t step_;
    bool exactly_;
  };
  const OnDevice device(Cuda());
  for (const bool exactly : {false, true}) {
    SCOPED_TRACE(exactly);
    Training<ConvNorm> training({"O2", DType::kF16}, kScale);
    StopAt stop(2, exactly);
    MPC_ASSERT_OK(training.model->Train(2, ShuffledBatches(kSteps), {stop}));
    EXPECT_EQ(stop.ends, training.model->global_step());
    EXPECT_EQ(stop.ended_at, training.model->global_step());
    EXPECT_EQ(StateItem(*training.model, "optimizer.step"), static_cast<double>(stop.ends));
    if (exactly) {
      EXPECT_EQ(stop.ends, 2);
    } else {
      EXPECT_LE(stop.ends, 2 + 2 * GetParam());
    }
  }
}

TEST_P(StepsPerLaunch, EvaluationBetweenEpochsSeesTheWholeEpoch) {
  class Evaluate : public Callback {
   public:
    explicit Evaluate(Model& model) : model_(model) {}
    void OnEpochEnd(RunContext& context) override {
      absl::StatusOr<std::map<std::string, double>> found = model_.Eval(GoodBatches({2, 6, 6}, 3));
      MPC_EXPECT_OK(found.status());
      context.Fail(found.status());
      if (found.ok()) metrics.push_back(found->at("loss"));
    }
    std::vector<double> metrics;

   private:
    Model& model_;
  };
  const auto losses = [](const ContextOptions& options) {
    const OnDevice device(options);
    SetSeed(7);
    ConvNorm network;
    nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
    nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
    Model model(network, loss, optimizer, {.metrics = {"loss"}, .amp_level = "O2"});
    Evaluate evaluate(model);
    MPC_EXPECT_OK(model.Train(2, ShuffledBatches(kSteps), {evaluate}));
    return evaluate.metrics;
  };
  EXPECT_EQ(losses({}), losses(Cuda()));
}

TEST_P(StepsPerLaunch, FitEvaluatesTheWholeEpochAndLeavesTheSameBits) {
  class Results : public Callback {
   public:
    void OnEpochEnd(RunContext& context) override { losses.push_back(context.eval_results().at("eval_loss")); }
    std::vector<double> losses;
  };
  const RunResult alone = TrainOn({}, ShuffledBatches(kSteps));
  const auto fit = [&](const ContextOptions& options) {
    const OnDevice device(options);
    Training<ConvNorm> training({"O2", DType::kF16}, kScale);
    Results results;
    MPC_EXPECT_OK(training.model->Fit(2, ShuffledBatches(kSteps), GoodBatches({2, 6, 6}, 3), {}, {results}));
    EXPECT_EQ(Differences(alone.state, StateOf(*training.model)), std::vector<std::string>{});
    return results.losses;
  };
  EXPECT_EQ(fit({}), fit(Cuda()));
}

TEST_P(StepsPerLaunch, LogsAndStopsAreThoseOfTheCpu) {
  const TemporaryFolder folder;
  const auto fit = [&](const ContextOptions& options, const std::string& log) {
    const OnDevice device(options);
    Training<ConvNorm> training({"O2", DType::kF16}, kScale);
    // No later epoch is better by so much: the weights of the first one come back.
    EarlyStopping stopping({.min_delta = 100, .restore_best_weights = true});
    MPC_EXPECT_OK(training.model->Fit(4, ShuffledBatches(kSteps, 3), GoodBatches({2, 6, 6}, 3), {},
                                      {stopping, CSVLogger({.filename = folder / log, .log_steps = 2})}));
    EXPECT_EQ(stopping.stopped_epoch(), 2);
    return StateOf(*training.model);
  };
  EXPECT_EQ(Differences(fit({}, "cpu.csv"), fit(Cuda(), "cuda.csv")), std::vector<std::string>{});
  EXPECT_EQ(ReadAll(folder / "cpu.csv"), ReadAll(folder / "cuda.csv"));
  EXPECT_EQ(Count(ReadAll(folder / "cpu.csv"), "\n"), 1 + 7 + 2);
}

TEST_P(StepsPerLaunch, TimedStepsLeaveTheSameBits) {
  class Timer : public Callback {
   public:
    bool WantsTiming(const RunContext& context) const override {
      return context.global_step >= 2 && context.global_step < 5;
    }
    void OnStepTimed(const StepTiming& timing) override {
      EXPECT_EQ(timing.instructions.size(), runtime::GroupInstructions(*timing.program, cpu::MayGroup).size());
      EXPECT_LE(timing.data_begin, timing.data_end);
      EXPECT_LE(timing.data_end, timing.run_begin);
      EXPECT_LE(timing.run_begin, timing.run_end);
      EXPECT_LE(timing.run_end, timing.records_begin);
      EXPECT_LE(timing.records_begin, timing.records_end);
      steps.push_back(timing.global_step);
    }
    std::vector<std::int64_t> steps;
  };
  const RunResult cpu = TrainOn({}, ShuffledBatches(kSteps));
  const OnDevice device(Cuda());
  Training<ConvNorm> training({"O2", DType::kF16}, kScale);
  Timer timer;
  Protocol protocol;
  MPC_ASSERT_OK(training.model->Train(2, ShuffledBatches(kSteps), {protocol, timer}));
  EXPECT_THAT(timer.steps, ElementsAre(3, 4, 5));
  EXPECT_EQ(cpu.protocol.ends, protocol.ends);
  EXPECT_EQ(Differences(cpu.state, StateOf(*training.model)), std::vector<std::string>{});
}

TEST_P(StepsPerLaunch, AFailureOfTheDeviceNamesItsStep) {
  const OnDevice device(Cuda());
  AsynchronousDeviceControl& control = UseAsynchronousDevice();
  control.fail_with = "an illegal address";
  control.fail_step = 4;
  Training<ConvNorm> training({"O2", DType::kF16}, kScale);
  Protocol protocol;
  const absl::Status status = training.model->Train(2, ShuffledBatches(kSteps), {protocol});
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("training step 5 (epoch 1 step 5): an illegal address"));
  // Records of the steps before it were told; nothing of those after it.
  EXPECT_EQ(protocol.ends.size(), 1u + 4u);
  EXPECT_FALSE(training.model->State("optimizer.step").Value().ok());
  UseAsynchronousDevice();
}

INSTANTIATE_TEST_SUITE_P(Counts, StepsPerLaunch, ::testing::Values(1, 2, 3, 16));

TEST(AsynchronousTraining, ALaunchIsUnderWayBeforeTheRecordsOfTheLastOneAreRead) {
  UseAsynchronousDevice();
  const RunResult run = TrainOn({.device = "cuda"}, ShuffledBatches(3));
  ASSERT_GE(run.protocol.all.size(), 8u);
  EXPECT_EQ(run.protocol.all[1], "begin 1.1 after 0");
  EXPECT_EQ(run.protocol.all[2], "begin 1.2 after 1");
  EXPECT_THAT(run.protocol.all[3], HasSubstr("1.1 step 1 loss"));
  EXPECT_EQ(run.protocol.all[4], "begin 1.3 after 2");
  EXPECT_THAT(run.protocol.all[5], HasSubstr("1.2 step 2 loss"));
  EXPECT_THAT(run.protocol.all[6], HasSubstr("1.3 step 3 loss"));
  EXPECT_EQ(run.protocol.all[7], "end of epoch 1: step 3");
}

/// Changes the learning rate before every step, by the step's number.
class Schedule : public Callback {
 public:
  explicit Schedule(nn::Optimizer& optimizer) : optimizer_(optimizer) {}
  void OnStepBegin(RunContext& context) override {
    context.Fail(optimizer_.SetLearningRate(0.1 / static_cast<double>(1 + context.global_step)));
  }
  void OnStepEnd(RunContext& context) override { rates.push_back(static_cast<float>(*context.learning_rate)); }
  std::vector<float> rates;

 private:
  nn::Optimizer& optimizer_;
};

std::vector<float> ScheduledRates(const ContextOptions& options, Snapshot* state) {
  const OnDevice device(options);
  SetSeed(7);
  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  Model model(network, loss, optimizer, {.amp_level = "O0", .record_learning_rate = true});
  Schedule schedule(optimizer);
  MPC_EXPECT_OK(model.Train(1, ShuffledBatches(6), {schedule}));
  *state = StateOf(model);
  return schedule.rates;
}

TEST(AsynchronousTraining, WhatAHookWritesActsFromTheNextLaunchOn) {
  UseAsynchronousDevice();
  Snapshot cpu, one, three;
  const std::vector<float> rates = ScheduledRates({}, &cpu);
  EXPECT_EQ(ScheduledRates({.device = "cuda"}, &one), rates);
  EXPECT_EQ(Differences(cpu, one), std::vector<std::string>{});
  // Three steps begin before their launch: the last rate written holds for all of them.
  EXPECT_THAT(ScheduledRates({.device = "cuda", .steps_per_launch = 3}, &three),
              ElementsAre(rates[2], rates[2], rates[2], rates[5], rates[5], rates[5]));
}

/// Losses of a step that scales three losses by itself, and the scales that the callbacks saw.
std::vector<std::string> TrainDcganOn(const ContextOptions& options) {
  const OnDevice device(options);
  SetSeed(7);
  const models::DcganOptions small{.image_size = 8, .width = 4};
  models::DcganGenerator generator(small);
  models::DcganDiscriminator discriminator(small);
  nn::Adam optimizer_g(generator.TrainableParams(), {.learning_rate = 1e-3});
  nn::Adam optimizer_d(discriminator.TrainableParams(), {.learning_rate = 1e-3});
  models::DcganStep step(generator, discriminator, optimizer_g, optimizer_d);
  MPC_EXPECT_OK(
      amp::Initialize({generator, discriminator}, {optimizer_g, optimizer_d}, {.level = "O2", .num_losses = 3}));
  Model model(step);
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 5; ++i) {
    data::Row row{Values({4, 1, 8, 8}, i), Values({4, small.latent_size}, 100 + i)};
    rows.push_back(i == 2 ? WithBadValue(row, kInfinity) : row);
  }
  Protocol protocol;
  MPC_EXPECT_OK(model.Train(2, data::GeneratorDataset(rows, {"images", "noise"}), {protocol}));
  return protocol.ends;
}

TEST(AsynchronousTraining, ScalersOfAStepOfTheUsersOwnAreFollowed) {
  AsynchronousDeviceControl& control = UseAsynchronousDevice();
  const std::vector<std::string> cpu = TrainDcganOn({});
  EXPECT_EQ(cpu, TrainDcganOn({.device = "cuda", .steps_per_launch = 2}));
  EXPECT_THAT(cpu, ::testing::Contains(HasSubstr("overflow")));
  EXPECT_GT(control.launches.front(), 1u);
}

TEST(AsynchronousTraining, ARunOfOverflowsThatEndsTrainingIsDiagnosed) {
  UseAsynchronousDevice();
  const OnDevice device({.device = "cuda", .steps_per_launch = 2});
  SetSeed(7);
  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  Model model(
      network, loss, optimizer,
      {.amp_level = "O2", .loss_scale_manager = FixedLossScaleManager({.loss_scale = 64}), .max_consecutive_skips = 6});
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 12; ++i) batches.push_back(WithBadValue(MakeBatch({2, 6, 6}, 8, i), kInfinity));
  const absl::Status status = model.Train(1, Batches(batches));
  EXPECT_THAT(std::string(status.message()), HasSubstr("step 6: 6 steps in a row were not finite at loss scale 64"));
  EXPECT_EQ(model.global_step(), 6);
}

// The state before a step is that of the device, and a step that may be written is not started ahead.
TEST(AsynchronousTraining, ACapsuleIsOfOneStepAndIsRepeatedOnTheDevice) {
  AsynchronousDeviceControl& control = UseAsynchronousDevice();
  const TemporaryFolder folder;
  const OnDevice device({.device = "cuda", .steps_per_launch = 2});
  SetSeed(7);
  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  Model model(network, loss, optimizer,
              {.amp_level = "O2",
               .loss_scale_manager = FixedLossScaleManager({.loss_scale = 64}),
               .capsule_path = folder / "x"});
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 6; ++i) batches.push_back(MakeBatch({2, 6, 6}, 8, i));
  batches[3] = WithBadValue(batches[3], kInfinity);
  MPC_ASSERT_OK(model.Train(1, Batches(batches)));
  EXPECT_THAT(control.launches, ::testing::Each(1u));
  const absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(folder / "x");
  MPC_ASSERT_OK(capsule.status());
  EXPECT_EQ(capsule->step, 4);
  EXPECT_EQ(capsule->program.device, "cuda");
  const absl::StatusOr<StepReplay> replay = ReplayStep(*capsule);
  MPC_ASSERT_OK(replay.status());
  EXPECT_THAT(replay->differences, ::testing::IsEmpty());
}

TEST(AsynchronousTraining, WhatTheContextAsksForReachesTheDevice) {
  AsynchronousDeviceControl& control = UseAsynchronousDevice();
  TrainOn({.device = "cuda", .graph = false, .allow_tf32 = true, .tune = true, .choice_cache = "choices"},
          GoodBatches({2, 6, 6}, 1));
  EXPECT_FALSE(control.load.graph);
  EXPECT_EQ(control.load.steps_per_launch, 1);
  EXPECT_TRUE(control.plan.tune);
  EXPECT_TRUE(control.plan.allow_tf32);
  EXPECT_EQ(control.plan.choice_cache, "choices");
  TrainOn({.device = "cuda", .steps_per_launch = 5}, GoodBatches({2, 6, 6}, 1));
  EXPECT_TRUE(control.load.graph);
  EXPECT_EQ(control.load.steps_per_launch, 5);
}

TEST(Context, ContradictionsNameBothOptions) {
  const auto message = [](const ContextOptions& options) { return std::string(SetContext(options).message()); };
  EXPECT_THAT(message({.steps_per_launch = 8}), HasSubstr("steps_per_launch = 8 and device = cpu contradict"));
  EXPECT_THAT(message({.graph = false}), HasSubstr("graph = off and device = cpu contradict"));
  EXPECT_THAT(message({.allow_tf32 = true}), HasSubstr("allow_tf32 = true and device = cpu contradict"));
  EXPECT_THAT(message({.allow_conv_statistics = true}),
              HasSubstr("allow_conv_statistics = true and device = cpu contradict"));
  EXPECT_THAT(message({.device = "cuda", .allow_winograd = true}),
              HasSubstr("allow_winograd = true and device = cuda contradict each other: only device \"cpu\""));
  EXPECT_THAT(message({.arch = "sm_90"}), HasSubstr("arch = sm_90 and device = cpu contradict"));
  EXPECT_THAT(message({.device = "cuda", .graph = false, .steps_per_launch = 2}),
              HasSubstr("steps_per_launch = 2 and graph = off contradict"));
  EXPECT_THAT(message({.device = "cuda", .steps_per_launch = 65}), HasSubstr("from 1 to 64, got 65"));
  EXPECT_THAT(message({.device = "tpu"}), HasSubstr("\"tpu\""));
}

}  // namespace
}  // namespace mpc::testing
