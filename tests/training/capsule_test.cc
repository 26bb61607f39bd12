// The capsule of a step: which step is written, what it holds, that it is repeated bit for bit, and that a run which
// cannot write it loses nothing.
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "frontend/state/step_capsule.h"
#include "kernels/cpu/kernel.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Shape kPicture = {2, 6, 6};

/// ConvNorm from one seed.
struct CapsuleTraining {
  explicit CapsuleTraining(ModelOptions options) {
    SetSeed(7);
    network = std::make_unique<ConvNorm>();
    optimizer = std::make_unique<nn::Momentum>(network->TrainableParams(), nn::MomentumOptions{.learning_rate = 0.05});
    model = std::make_unique<Model>(*network, loss, *optimizer, std::move(options));
  }
  /// Three good batches, then one with a value that is not finite, then a good one.
  absl::Status Train() {
    std::vector<data::Row> rows;
    for (int i = 0; i < 5; ++i) rows.push_back(MakeBatch(kPicture, 8, i));
    rows[3] = WithBadValue(rows[3], kInfinity);
    return TrainOn(std::move(rows));
  }
  absl::Status TrainOn(std::vector<data::Row> rows, const CallbackList& callbacks = {}) {
    ::testing::internal::CaptureStderr();
    const absl::Status status = model->Train(1, Batches(std::move(rows)), callbacks);
    said = ::testing::internal::GetCapturedStderr();
    return status;
  }
  std::unique_ptr<ConvNorm> network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  std::unique_ptr<nn::Momentum> optimizer;
  std::unique_ptr<Model> model;
  std::string said;
};

/// O2 with a scale that does not overflow by itself.
ModelOptions LowOptions(std::string path, std::int64_t at = 0, std::int64_t micro_batches = 1) {
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  return {.amp_level = "O2",
          .loss_scale_manager = dynamic,
          .accumulation_steps = micro_batches,
          .capsule_path = std::move(path),
          .capsule_at = at};
}

void ExpectRepeated(const StepCapsule& capsule) {
  const absl::StatusOr<StepReplay> replay = ReplayStep(capsule);
  MPC_ASSERT_OK(replay.status());
  EXPECT_THAT(replay->differences, IsEmpty());
}

void ExpectSameTensors(const StepCapsule::NamedTensors& a, const StepCapsule::NamedTensors& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_EQ(a[i].second.bytes(), b[i].second.bytes()) << a[i].first;
  }
}

TEST(StepCapsules, TheFirstBadStepIsRepeatedBitForBitOnAnyThreads) {
  const TemporaryFolder folder;
  CapsuleTraining training(LowOptions(folder / "x"));
  MPC_ASSERT_OK(training.Train());
  EXPECT_THAT(training.said, HasSubstr("capsule of step 4 (not finite): writing "));
  const absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(folder / "x");
  MPC_ASSERT_OK(capsule.status());
  EXPECT_EQ(capsule->step, 4);
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(threads);
    cpu::SetNumThreads(threads);
    ExpectRepeated(*capsule);
  }
  cpu::SetNumThreads(1);
}

/// `count` good batches; that of number `bad` has a value that is not finite.
std::vector<data::Row> BatchesWithABadOne(int count, std::size_t bad) {
  std::vector<data::Row> rows;
  for (int i = 0; i < count; ++i) rows.push_back(MakeBatch(kPicture, 8, i));
  rows[bad] = WithBadValue(rows[bad], kInfinity);
  return rows;
}

std::vector<std::string> NamesOf(const StepCapsule::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

// The bad one is the first of a step's micro-batches: the last one, which skips the step, is finite.
TEST(StepCapsules, AStepThatAccumulatesIsRepeatedWithAllItsMicroBatches) {
  const TemporaryFolder folder;
  for (const bool scales : {true, false}) {
    SCOPED_TRACE(scales);
    ModelOptions options = LowOptions(folder / "x", 0, 3);
    if (!scales) options = {.accumulation_steps = 3, .capsule_path = folder / "x"};
    CapsuleTraining training(std::move(options));
    MPC_ASSERT_OK(training.TrainOn(BatchesWithABadOne(9, 3)));
    const absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(folder / "x");
    MPC_ASSERT_OK(capsule.status());
    EXPECT_EQ(capsule->step, 2);
    EXPECT_EQ(capsule->reason, "not finite");
    EXPECT_EQ(capsule->runs, 3);
    EXPECT_THAT(NamesOf(capsule->batch), ElementsAre("data", "label", "data@2", "label@2", "data@3", "label@3"));
    EXPECT_EQ(capsule->batch[2].second.bytes(), MakeBatch(kPicture, 8, 4)[0].bytes());
    EXPECT_FALSE(IsFinite(*capsule, capsule->record));
    for (const int threads : {1, 3}) {
      cpu::SetNumThreads(threads);
      ExpectRepeated(*capsule);
    }
    cpu::SetNumThreads(1);
  }
}

TEST(StepCapsules, AStepOfGoodMicroBatchesIsFiniteAndRepeated) {
  const TemporaryFolder folder;
  CapsuleTraining training(LowOptions(folder / "x", 3, 2));
  MPC_ASSERT_OK(training.TrainOn(BatchesWithABadOne(8, 7)));
  const absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(folder / "x");
  MPC_ASSERT_OK(capsule.status());
  EXPECT_EQ(capsule->step, 3);
  EXPECT_EQ(capsule->runs, 2);
  EXPECT_TRUE(IsFinite(*capsule, capsule->record));
  ExpectRepeated(*capsule);
}

// Its micro-batches before the checkpoint are in the accumulators alone. So is what is written to a statistic there.
TEST(StepCapsules, AStepThatACheckpointHasCutIsRepeatedFromThere) {
  const TemporaryFolder folder;
  const std::vector<data::Row> rows = BatchesWithABadOne(3, 2);
  CapsuleTraining saved(LowOptions("", 0, 3));
  MPC_ASSERT_OK(saved.TrainOn({rows[0]}));
  MPC_ASSERT_OK(saved.model->SaveCheckpoint(folder / "checkpoint"));
  for (const bool writes : {false, true}) {
    SCOPED_TRACE(writes);
    CapsuleTraining resumed(LowOptions(folder / "x", 0, 3));
    MPC_ASSERT_OK(resumed.model->LoadCheckpoint(folder / "checkpoint", {.continue_run = false}).status());
    if (writes) MPC_ASSERT_OK(resumed.network->norm.moving_mean.SetData(Tensor::Full({4}, 0.5)));
    MPC_ASSERT_OK(resumed.TrainOn({rows[1], rows[2]}));
    const absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(folder / "x");
    MPC_ASSERT_OK(capsule.status());
    EXPECT_EQ(capsule->step, 1);
    EXPECT_EQ(capsule->runs, 2);
    ExpectRepeated(*capsule);
  }
  // One run whose calls of Train cut a step has all of it.
  CapsuleTraining whole(LowOptions(folder / "x", 0, 3));
  MPC_ASSERT_OK(whole.TrainOn({rows[0]}));
  MPC_ASSERT_OK(whole.TrainOn({rows[1], rows[2]}));
  const absl::StatusOr<StepCapsule> all = ReadStepCapsule(folder / "x");
  MPC_ASSERT_OK(all.status());
  EXPECT_EQ(all->runs, 3);
  ExpectRepeated(*all);
}

/// Moves a parameter once, behind step `step` of the epoch.
class MovesAParameter : public Callback {
 public:
  MovesAParameter(Parameter parameter, std::int64_t step) : parameter_(std::move(parameter)), step_(step) {}
  void OnStepEnd(RunContext& context) override {
    if (context.step_in_epoch != step_) return;
    MPC_EXPECT_OK(parameter_.SetData(Tensor::Full(parameter_.shape(), 0.5)));
  }

 private:
  Parameter parameter_;
  std::int64_t step_;
};

/// Asks a part of the network for its Parameters after each step, which names them by its own paths.
class NamesAPart : public Callback {
 public:
  explicit NamesAPart(nn::Cell& part) : part_(part) {}
  void OnStepEnd(RunContext& context) override { part_.TrainableParams(); }

 private:
  nn::Cell& part_;
};

TEST(StepCapsules, StateHasItsNamesWhereACallbackHasGivenItOthers) {
  for (const std::int64_t micro_batches : {1, 2}) {
    const TemporaryFolder folder;
    CapsuleTraining training(LowOptions(folder / "x", 2, micro_batches));
    NamesAPart names(training.network->fc);
    MPC_ASSERT_OK(training.TrainOn(BatchesWithABadOne(6, 5), {names}));
    const absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(folder / "x");
    ASSERT_TRUE(capsule.ok()) << training.said;
    EXPECT_EQ(capsule->step, 2);
    ExpectRepeated(*capsule);
  }
}

TEST(StepCapsules, WhatNoCapsuleRepeatsIsSaidAndTheNextBadStepIsKept) {
  const TemporaryFolder folder;
  CapsuleTraining training(LowOptions(folder / "x", 0, 2));
  std::vector<data::Row> rows = BatchesWithABadOne(6, 1);
  rows[4] = WithBadValue(rows[4], kInfinity);
  MovesAParameter moves(training.network->fc.bias, 1);
  MPC_ASSERT_OK(training.TrainOn(rows, {moves}));
  EXPECT_THAT(training.said, HasSubstr("warning: no capsule of step 1: its state was changed from outside between two "
                                       "of its micro-batches; training goes on"));
  const absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(folder / "x");
  MPC_ASSERT_OK(capsule.status());
  EXPECT_EQ(capsule->step, 3);
  ExpectRepeated(*capsule);
  // Behind a whole step anything may be moved.
  CapsuleTraining between(LowOptions(folder / "between", 2, 2));
  MovesAParameter behind(between.network->fc.bias, 2);
  MPC_ASSERT_OK(between.TrainOn(rows, {behind}));
  const absl::StatusOr<StepCapsule> second = ReadStepCapsule(folder / "between");
  MPC_ASSERT_OK(second.status());
  ExpectRepeated(*second);
  CapsuleTraining shapes(LowOptions(folder / "shapes", 1, 2));
  MPC_ASSERT_OK(shapes.TrainOn({rows[0], MakeBatch(kPicture, 4, 0)}));
  EXPECT_THAT(shapes.said, HasSubstr("no capsule of step 1: its micro-batches ran different Programs"));
}

// Of a step that skips only small state is copied before it: that gives the capsule which copying all of it gives.
TEST(StepCapsules, WhatASkippedStepHoldsIsTheStateBeforeIt) {
  const TemporaryFolder folder;
  CapsuleTraining first_bad(LowOptions(folder / "bad"));
  MPC_ASSERT_OK(first_bad.Train());
  CapsuleTraining asked(LowOptions(folder / "asked", 4));
  MPC_ASSERT_OK(asked.Train());
  const absl::StatusOr<StepCapsule> a = ReadStepCapsule(folder / "bad");
  const absl::StatusOr<StepCapsule> b = ReadStepCapsule(folder / "asked");
  MPC_ASSERT_OK(a.status());
  MPC_ASSERT_OK(b.status());
  ExpectSameTensors(a->state, b->state);
  ExpectSameTensors(a->batch, b->batch);
  EXPECT_EQ(a->after, b->after);
  EXPECT_EQ(a->options, b->options);
}

TEST(StepCapsules, AnyStepMayBeAskedFor) {
  const TemporaryFolder folder;
  CapsuleTraining training(LowOptions(folder / "x", 2));
  MPC_ASSERT_OK(training.Train());
  const absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(folder / "x");
  MPC_ASSERT_OK(capsule.status());
  EXPECT_EQ(capsule->step, 2);
  EXPECT_EQ(capsule->reason, "asked for");
  const absl::StatusOr<StepReplay> replay = ReplayStep(*capsule);
  MPC_ASSERT_OK(replay.status());
  EXPECT_THAT(replay->differences, IsEmpty());
}

TEST(StepCapsules, WithoutAScalerAllStateIsKeptAndALossThatIsNotFiniteIsBad) {
  const TemporaryFolder folder;
  CapsuleTraining training({.capsule_path = folder / "x"});
  MPC_ASSERT_OK(training.Train());
  const absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(folder / "x");
  MPC_ASSERT_OK(capsule.status());
  EXPECT_EQ(capsule->step, 4);
  for (const auto& [name, value] : capsule->state) {
    for (const float element : value.ToFloats()) EXPECT_TRUE(std::isfinite(element)) << name;
  }
  const absl::StatusOr<StepReplay> replay = ReplayStep(*capsule);
  MPC_ASSERT_OK(replay.status());
  EXPECT_THAT(replay->differences, IsEmpty());
}

TEST(StepCapsules, ADifferenceOfOneBitIsNamed) {
  const TemporaryFolder folder;
  CapsuleTraining training(LowOptions(folder / "x", 2));
  MPC_ASSERT_OK(training.Train());
  absl::StatusOr<StepCapsule> capsule = ReadStepCapsule(folder / "x");
  MPC_ASSERT_OK(capsule.status());
  for (auto& [name, value] : capsule->state) {
    if (name != "fc.bias") continue;
    std::vector<float> bias = value.ToFloats();
    bias[1] = std::nextafter(bias[1], 2.0f);
    value = Tensor::From(bias, value.shape());
  }
  const absl::StatusOr<StepReplay> replay = ReplayStep(*capsule);
  MPC_ASSERT_OK(replay.status());
  EXPECT_THAT(replay->differences, ::testing::Contains(HasSubstr("state \"fc.bias\" after the step: checksum ")));
}

TEST(StepCapsules, ARunWhoseDiskIsFullGoesOnAsWithoutOne) {
  const TemporaryFolder folder;
  CapsuleTraining plain(LowOptions(""));
  MPC_ASSERT_OK(plain.Train());
  const std::map<std::string, std::vector<float>> wanted = [&] {
    std::map<std::string, std::vector<float>> state;
    for (const Parameter& each : plain.model->AllState()) state[each.name()] = each.Value()->ToFloats();
    return state;
  }();
  // In a process of its own: the limit holds for every file.
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    CapsuleTraining training(LowOptions(folder / "x"));
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    bool good = training.model
                    ->Train(1, Batches({MakeBatch(kPicture, 8, 0), MakeBatch(kPicture, 8, 1), MakeBatch(kPicture, 8, 2),
                                        WithBadValue(MakeBatch(kPicture, 8, 3), kInfinity), MakeBatch(kPicture, 8, 4)}))
                    .ok();
    for (const Parameter& each : training.model->AllState()) good &= wanted.at(each.name()) == each.Value()->ToFloats();
    _exit(good ? 7 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(StepCapsules, WhatCannotBeWrittenIsRefusedByName) {
  const auto error = [](ModelOptions options) {
    CapsuleTraining training(std::move(options));
    return std::string(training.Train().message());
  };
  const TemporaryFolder folder;
  EXPECT_THAT(error(LowOptions(folder / "none/x")), HasSubstr("none"));
  EXPECT_THAT(error({.capsule_at = 3}), HasSubstr("capsule_at = 3 needs capsule_path"));
  EXPECT_THAT(error({.capsule_path = folder / "x", .capsule_at = -1}), HasSubstr("capsule_at = -1"));
}

}  // namespace
}  // namespace mpc::testing
