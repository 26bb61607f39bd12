// AMP-26: training that resumes from a checkpoint gives the bits of training that never stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "frontend/state/safetensors.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/resume_support.h"
#include "tests/training/two_optimizer_step.h"

namespace mpc {
namespace {

using testing::ConvNorm;
using testing::Differences;
using ::testing::IsEmpty;
using testing::Level;
using testing::SaveAt;
using testing::ShuffledBatches;
using testing::StateOf;
using testing::TemporaryFolder;
using testing::Training;

struct Course {
  testing::Snapshot state;
  std::vector<float> losses;
};

/// Trains `epochs` in one go.
Course Uninterrupted(const Level& level, LossScaleChoice scale, const data::Dataset& dataset, std::int64_t epochs,
                     std::int64_t save_at, const std::string& path) {
  Training<ConvNorm> training(level, scale);
  testing::LossRecorder losses;
  MPC_EXPECT_OK(training.model->Train(epochs, dataset, {losses, SaveAt(save_at, path)}));
  return {StateOf(*training.model), losses.losses};
}

/// Resumes in a Model that was made from another seed, and expects the bits of `whole`.
void ExpectResumedEquals(const Course& whole, const Level& level, LossScaleChoice scale, const data::Dataset& dataset,
                         std::int64_t epochs, std::int64_t saved_at, const std::string& path) {
  Training<ConvNorm> training(level, scale);
  MPC_ASSERT_OK(training.network->SetParameter("fc.bias", Tensor::From<float>({5, 6, 7}, {3})));
  const absl::StatusOr<ResumeReport> report = training.model->LoadCheckpoint(path);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->differences, IsEmpty());
  EXPECT_EQ(report->global_step, saved_at);
  EXPECT_EQ(report->loaded.size(), whole.state.size());
  SetSeed(99);
  testing::LossRecorder losses;
  MPC_ASSERT_OK(training.model->Train(epochs, dataset, {losses}));
  EXPECT_THAT(Differences(whole.state, StateOf(*training.model)), IsEmpty());
  EXPECT_EQ(losses.losses, std::vector<float>(whole.losses.begin() + saved_at, whole.losses.end()));
  EXPECT_EQ(training.model->global_step(), static_cast<std::int64_t>(whole.losses.size()));
}

class Resume : public ::testing::TestWithParam<Level> {
 protected:
  TemporaryFolder folder_;
};

TEST_P(Resume, AMP26AtStep5Of10IsBitEqual) {
  const std::string path = folder_ / "at5";
  const data::Dataset dataset = ShuffledBatches(10);
  const Course whole = Uninterrupted(GetParam(), {}, dataset, 1, 5, path);
  ASSERT_EQ(whole.losses.size(), 10u);
  ExpectResumedEquals(whole, GetParam(), {}, dataset, 1, 5, path);
}

TEST_P(Resume, AMP26InTheMiddleOfALaterEpochIsBitEqual) {
  const std::string path = folder_ / "at5";
  const data::Dataset dataset = ShuffledBatches(4);
  const Course whole = Uninterrupted(GetParam(), {}, dataset, 3, 6, path);
  ExpectResumedEquals(whole, GetParam(), {}, dataset, 3, 6, path);
}

TEST_P(Resume, AMP26AtTheEndOfAnEpochIsBitEqual) {
  const std::string path = folder_ / "at4";
  const data::Dataset dataset = ShuffledBatches(4);
  const Course whole = Uninterrupted(GetParam(), {}, dataset, 2, 4, path);
  ExpectResumedEquals(whole, GetParam(), {}, dataset, 2, 4, path);
}

TEST_P(Resume, AMP26RightAfterAnOverflowIsBitEqual) {
  const std::string path = folder_ / "at5";
  const DynamicLossScaleManager scale({.init_loss_scale = 1024, .scale_window = 4});
  const data::Dataset dataset = ShuffledBatches(10, /*bad=*/4);
  const Course whole = Uninterrupted(GetParam(), scale, dataset, 1, 5, path);
  const absl::StatusOr<Safetensors> saved = LoadSafetensors(path);
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(saved->Find("scaler.good")->Item<int>(), 0);
  EXPECT_EQ(saved->Find("scaler.skipped")->Item<int>(), 1);
  // Grown once after step 4, then shrunk.
  EXPECT_EQ(saved->Find("scaler.scale")->Item<float>(), 1024.0f);
  ExpectResumedEquals(whole, GetParam(), scale, dataset, 1, 5, path);
}

TEST_P(Resume, AMP26OneStepBeforeGrowthIsBitEqual) {
  const std::string path = folder_ / "at5";
  const DynamicLossScaleManager scale({.init_loss_scale = 1024, .scale_window = 6});
  const data::Dataset dataset = ShuffledBatches(10);
  const Course whole = Uninterrupted(GetParam(), scale, dataset, 1, 5, path);
  const absl::StatusOr<Safetensors> saved = LoadSafetensors(path);
  ASSERT_TRUE(saved.ok());
  EXPECT_EQ(saved->Find("scaler.good")->Item<int>(), 5);
  ExpectResumedEquals(whole, GetParam(), scale, dataset, 1, 5, path);
}

INSTANTIATE_TEST_SUITE_P(Levels, Resume, ::testing::ValuesIn(testing::AllLevels()), testing::LevelName);
// Their assignment is solved once and goes with the checkpoint.
INSTANTIATE_TEST_SUITE_P(Solved, Resume,
                         ::testing::Values(Level{"O1", DType::kF16}, Level{"O1", DType::kBF16},
                                           Level{"auto", DType::kBF16}),
                         testing::LevelName);

/// Trains in one go and saves after `save_at` steps; resumes from there and expects the same bits. `make` gives a
/// pointer to something with a `model`.
template <typename Make>
void ExpectSameBits(const Make& make, const data::Dataset& dataset, std::int64_t save_at) {
  const TemporaryFolder folder;
  const auto whole = make();
  testing::LossRecorder losses;
  MPC_ASSERT_OK(whole->model.Train(1, dataset, {losses, SaveAt(save_at, folder / "saved")}));
  const testing::Snapshot expected = StateOf(whole->model);
  const auto resumed = make();
  const absl::StatusOr<ResumeReport> report = resumed->model.LoadCheckpoint(folder / "saved");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->differences, IsEmpty());
  testing::LossRecorder more;
  MPC_ASSERT_OK(resumed->model.Train(1, dataset, {more}));
  EXPECT_THAT(Differences(expected, StateOf(resumed->model)), IsEmpty());
  EXPECT_EQ(more.losses, std::vector<float>(losses.losses.begin() + save_at, losses.losses.end()));
  EXPECT_EQ(resumed->model.global_step(), whole->model.global_step());
}

/// ConvNorm under any options.
struct OptionsTraining {
  explicit OptionsTraining(ModelOptions options) : options((SetSeed(7), std::move(options))) {}
  ModelOptions options;
  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  nn::Adam optimizer{network.TrainableParams(), {.learning_rate = 0.01}};
  Model model{network, loss, optimizer, options};
};

TEST(ResumeOptions, AMP26InAnEpochThatIsLongerThanTheFirstOneIsBitEqual) {
  const TemporaryFolder folder;
  const auto keeps = [](const data::Row&, const data::RowPosition& at) { return at.epoch > 0 || at.row < 2; };
  const data::Dataset dataset = ShuffledBatches(6).Filter(keeps);
  ASSERT_EQ(*dataset.size(), 2);
  // Step 5 of the second epoch.
  const Course whole = Uninterrupted({"O0", {}}, {}, dataset, 2, 7, folder / "at7");
  ASSERT_EQ(whole.losses.size(), 8u);
  ExpectResumedEquals(whole, {"O0", {}}, {}, dataset, 2, 7, folder / "at7");
}

TEST(ResumeOptions, AMP26ParametersWithoutMastersAreBitEqual) {
  for (const char* dtype : {"f16", "bf16"}) {
    const amp::Options amp{.level = "O3", .dtype = dtype, .master_weights = false, .verbosity = 0};
    ExpectSameBits([&] { return std::make_unique<OptionsTraining>(ModelOptions{.amp = amp}); }, ShuffledBatches(10), 5);
  }
}

TEST(ResumeOptions, AMP26InTheMiddleOfAccumulationIsBitEqual) {
  for (std::int64_t save_at : {4, 5, 6, 7}) {
    ExpectSameBits(
        [] { return std::make_unique<OptionsTraining>(ModelOptions{.amp_level = "O2", .accumulation_steps = 3}); },
        ShuffledBatches(10, /*bad=*/1), save_at);
  }
}

TEST(ResumeClassNames, AreThoseOfTheRunThatIsContinued) {
  const TemporaryFolder folder;
  const data::Dataset dataset = ShuffledBatches(4).WithClassNames({"ant", "bee", "cow"});
  OptionsTraining whole({});
  MPC_ASSERT_OK(whole.model.Train(1, dataset, {SaveAt(2, folder / "saved")}));
  EXPECT_EQ(whole.model.class_names(), dataset.class_names());
  const auto train = [&](const data::Dataset& data, const ResumeOptions& options) {
    OptionsTraining resumed({});
    MPC_EXPECT_OK(resumed.model.LoadCheckpoint(folder / "saved", options).status());
    EXPECT_EQ(resumed.model.class_names(), dataset.class_names());
    const absl::Status status = resumed.model.Train(1, data);
    if (status.ok()) MPC_EXPECT_OK(resumed.model.SaveCheckpoint(folder / "again"));
    return status;
  };
  MPC_EXPECT_OK(train(dataset, {}));
  MPC_EXPECT_OK(train(dataset.WithClassNames({}), {}));
  const data::Dataset others = dataset.WithClassNames({"ant", "cow", "bee"});
  EXPECT_THAT(
      std::string(train(others, {}).message()),
      ::testing::HasSubstr("the classes of the data set are ant, cow, bee, but the checkpoint's are ant, bee, cow"));
  MPC_EXPECT_OK(train(others, {.continue_run = false}));
  OptionsTraining last({});
  MPC_ASSERT_OK(last.model.LoadCheckpoint(folder / "again").status());
  EXPECT_EQ(last.model.class_names(), others.class_names());
}

struct TwoOptimizers {
  TwoOptimizers() { SetSeed(7); }
  testing::TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  nn::WithLossCell with_loss{network, loss};
  nn::Momentum first{network.fc1.TrainableParams(), {.learning_rate = 0.05}};
  nn::Adam second{network.fc2.TrainableParams(), {.learning_rate = 0.01}};
  testing::TwoOptimizerStep step{with_loss, first, second};
  Model model{step};
};

TEST(ResumeOwnStep, EveryOptimizerOfTheStepIsResumed) {
  ExpectSameBits([] { return std::make_unique<TwoOptimizers>(); }, testing::GoodBatches({6}, 10).Shuffle(1), 5);
}

/// Two networks, a loss and an optimizer each; an infinite label element reaches the first loss only.
class TwoLossStep : public nn::TrainingStep {
 public:
  MPC_CELL(TwoLossStep, first, second)
  explicit TwoLossStep(const char* level)
      : initialized(amp::Initialize({first, second}, {optimizer_x, optimizer_y},
                                    {.level = level, .loss_scale = "dynamic", .num_losses = 2, .verbosity = 0})) {}

  Tensor Construct(Tensor x, Tensor label) {
    const Tensor difference = first(x) - label;
    const Tensor loss_x = reduce_sum(difference * difference);
    const Tensor y = second(x);
    const Tensor loss_y = reduce_sum(y * y);
    const auto of_x = ops::Backward(amp::ScaleLoss(loss_x, optimizer_x, {.loss_id = 0}), optimizer_x.parameters());
    const auto of_y = ops::Backward(amp::ScaleLoss(loss_y, optimizer_y, {.loss_id = 1}), optimizer_y.parameters());
    const bool stepped = optimizer_x(of_x) && optimizer_y(of_y);
    return ops::Depend(loss_x + loss_y, stepped);
  }

  testing::TwoLayers first;
  nn::Dense second{6, 3};
  nn::Momentum optimizer_x{first.TrainableParams(), {.learning_rate = 1e-3}};
  nn::Momentum optimizer_y{second.TrainableParams(), {.learning_rate = 1e-3}};
  absl::Status initialized;
};

struct TwoLosses {
  explicit TwoLosses(const char* level) : step((SetSeed(7), level)) {}
  TwoLossStep step;
  Model model{step};
};

class ResumeTwoLosses : public ::testing::TestWithParam<const char*> {};

TEST_P(ResumeTwoLosses, AMP26RightAfterAnOverflowOfOneIsBitEqual) {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 10; ++i) batches.push_back(testing::MakeBatch({6}, 8, i));
  std::vector<float> labels = batches[4][1].ToFloats();
  labels[0] = testing::kInfinity;
  batches[4][1] = Tensor::From(labels, batches[4][1].shape());
  TwoLosses once(GetParam());
  MPC_ASSERT_OK(once.model.Train(1, testing::Batches(batches)));
  EXPECT_LT(once.model.loss_scale(0), once.model.loss_scale(1));
  for (std::int64_t save_at : {5, 6}) {
    ExpectSameBits([] { return std::make_unique<TwoLosses>(GetParam()); }, testing::Batches(batches), save_at);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ResumeTwoLosses, ::testing::Values("O0", "O1", "O2"),
                         [](const auto& info) { return std::string(info.param); });

/// Sends SIGTERM while step `at` runs.
class TerminateAt : public Callback {
 public:
  explicit TerminateAt(std::int64_t at) : at_(at) {}
  void OnStepBegin(RunContext& context) override {
    if (context.global_step + 1 == at_) ::raise(SIGTERM);
  }

 private:
  std::int64_t at_;
};

TEST(ResumeAfterASignal, AMP26GoesOnBitEqual) {
  const TemporaryFolder folder;
  const std::string path = folder / "stopped.safetensors";
  const data::Dataset dataset = ShuffledBatches(5);
  const Level level{"O2", DType::kF16};
  const Course whole = Uninterrupted(level, {}, dataset, 2, 1, folder / "first.safetensors");

  Training<ConvNorm> stopped(level);
  testing::LossRecorder losses;
  OnRequestExit on_exit({.save_path = path});
  MPC_ASSERT_OK(stopped.model->Train(2, dataset, {losses, TerminateAt(7), on_exit}));
  EXPECT_EQ(on_exit.signal(), SIGTERM);
  EXPECT_EQ(losses.losses.size(), 7u);
  EXPECT_EQ(stopped.model->global_step(), 7);
  ExpectResumedEquals(whole, level, {}, dataset, 2, 7, path);
}

}  // namespace
}  // namespace mpc
