// What Model::LoadCheckpoint accepts, refuses and reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/state/checkpoint_file.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/probe.h"
#include "tests/training/resume_support.h"

namespace mpc {
namespace {

using ::testing::Contains;
using testing::ConvNorm;
using testing::Differences;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Level;
using testing::SaveAt;
using testing::ShuffledBatches;
using testing::StateItem;
using testing::StateOf;
using testing::TemporaryFolder;
using testing::Training;

/// A trained Model and its checkpoint.
class LoadTraining : public ::testing::Test {
 protected:
  void SetUp() override {
    training_ = std::make_unique<Training<ConvNorm>>(Level{"O2", DType::kF16});
    MPC_ASSERT_OK(training_->model->Train(1, ShuffledBatches(3)));
    path_ = folder_ / "checkpoint";
    MPC_ASSERT_OK(training_->model->SaveCheckpoint(path_));
  }

  /// Writes the checkpoint with a change, its checksum made anew.
  std::string Changed(const std::function<void(Safetensors&)>& change) {
    Safetensors content = *LoadSafetensors(path_);
    change(content);
    const std::string path = folder_ / "changed";
    MPC_EXPECT_OK(internal::WriteCheckpointFile(path, content));
    return path;
  }

  /// Loads into a trained Model, expects an error with every part, and that nothing has changed.
  void ExpectError(const std::string& path, const std::vector<std::string>& parts) {
    Training<ConvNorm> other(Level{"O2", DType::kF16});
    MPC_ASSERT_OK(other.model->Train(1, ShuffledBatches(2)));
    const testing::Snapshot before = StateOf(*other.model);
    const absl::Status status = other.model->LoadCheckpoint(path).status();
    EXPECT_FALSE(status.ok());
    for (const std::string& part : parts) EXPECT_THAT(std::string(status.message()), HasSubstr(part));
    EXPECT_THAT(Differences(before, StateOf(*other.model)), IsEmpty());
    EXPECT_EQ(other.model->global_step(), 2);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Training<ConvNorm>> training_;
  std::string path_;
};

TEST_F(LoadTraining, HoldsEveryEntryOfTheStateAndNothingDerived) {
  const absl::StatusOr<Safetensors> saved = LoadSafetensors(path_);
  ASSERT_TRUE(saved.ok());
  const testing::Snapshot state = StateOf(*training_->model);
  EXPECT_EQ(saved->tensors.size(), state.size());
  for (const auto& [name, bytes] : state) {
    const Tensor* found = saved->Find(name);
    ASSERT_NE(found, nullptr) << name;
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), found->bytes().begin(), found->bytes().end())) << name;
  }
  EXPECT_EQ(saved->Find("conv.weight")->dtype(), DType::kF32) << "masters, not their low copies";
}

TEST_F(LoadTraining, ErrorsListEveryProblemAndLoadNothing) {
  const std::string path = Changed([](Safetensors& content) {
    std::erase_if(content.tensors, [](const auto& entry) { return entry.first == "optimizer.fc.bias.velocity"; });
    for (auto& [name, tensor] : content.tensors) {
      if (name == "conv.weight") tensor = Tensor::Zeros({4, 2, 3, 2});
      if (name == "fc.weight") tensor = tensor.To(DType::kF16);
      if (name == "scaler.good") tensor = Tensor::Scalar(1.0f);
    }
    content.tensors.emplace_back("fc2.weight", Tensor::Zeros({1}));
  });
  ExpectError(path, {"'optimizer.fc.bias.velocity' (slot) is missing",
                     "'conv.weight' is tensor<4x2x3x2xf32> in the file, tensor<4x2x3x3xf32> in the Model",
                     "'fc.weight' is tensor<3x36xf16> in the file", "'scaler.good' is tensor<f32> in the file",
                     "'fc2.weight' is unknown to this Model", "nothing was loaded"});
}

TEST_F(LoadTraining, DamagedTruncatedAndForeignFilesAreErrors) {
  const std::string good = testing::ReadAll(path_);
  ExpectError(folder_ / "absent", {"absent"});
  ExpectError(folder_.Write("truncated", good.substr(0, good.size() / 2)), {"truncated"});
  std::string flipped = good;
  flipped[good.size() - 100] = static_cast<char>(flipped[good.size() - 100] ^ 4);
  ExpectError(folder_.Write("flipped", flipped), {"flipped is damaged: its checksum is"});
  ExpectError(folder_.Write("text", "no checkpoint"), {"text"});
  MPC_ASSERT_OK(SaveSafetensors(folder_ / "foreign", {{{"x", Tensor::Zeros({1})}}, {{"format", "pt"}}}));
  ExpectError(folder_ / "foreign", {"is no checkpoint of training", "LoadParamIntoNet"});
  ExpectError(Changed([](Safetensors& content) { content.metadata["position"] = "{}"; }), {"'position' is not"});
}

TEST_F(LoadTraining, WeightsAloneNameTheFunctionThatLoadsThem) {
  MPC_ASSERT_OK(SaveCheckpoint(*training_->network, folder_ / "weights"));
  ExpectError(folder_ / "weights", {"no optimizer state", "LoadParamIntoNet(network, path) loads its weights"});
  const std::string slotless = Changed([](Safetensors& content) {
    std::erase_if(content.tensors, [](const auto& entry) { return entry.first.rfind("optimizer.", 0) == 0; });
  });
  ExpectError(slotless, {"'optimizer.step' (step) is missing", "the file has no optimizer state: LoadParamIntoNet"});
}

TEST_F(LoadTraining, AnotherOptimizerIsAnError) {
  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Adam optimizer(network.TrainableParams(), {});
  Model model(network, loss, optimizer, {.amp_level = "O2"});
  const absl::Status status = model.LoadCheckpoint(path_).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("the optimizer was Momentum, here it is Adam"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("'optimizer.conv.weight.velocity' is unknown"));
}

TEST_F(LoadTraining, AtAnotherLevelItResumesFromTheMastersAndSaysSo) {
  Training<ConvNorm> other(Level{"O0", {}});
  const absl::StatusOr<ResumeReport> report = other.model->LoadCheckpoint(path_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->differences, Contains(HasSubstr("amp level: O2 in the file, O0 here")));
  EXPECT_THAT(report->differences, Contains(HasSubstr("resumes from the f32 masters")));
  const testing::Snapshot there = testing::WithoutScaler(StateOf(*training_->model));
  EXPECT_THAT(Differences(there, StateOf(*other.model)), IsEmpty());
  MPC_EXPECT_OK(other.model->Train(2, ShuffledBatches(3)));
  EXPECT_EQ(other.model->global_step(), 6);
  // And back: the scaler that O0 has none of starts anew.
  MPC_ASSERT_OK(other.model->SaveCheckpoint(folder_ / "O0"));
  Training<ConvNorm> back(Level{"O2", DType::kF16});
  const absl::StatusOr<ResumeReport> again = back.model->LoadCheckpoint(folder_ / "O0");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_THAT(again->differences, Contains(HasSubstr("the loss scaler keeps its own state")));
  EXPECT_EQ(back.model->loss_scale(), 0x1p24);
}

TEST_F(LoadTraining, AnotherEnvironmentIsReported) {
  const std::string path = Changed([](Safetensors& content) {
    content.metadata["environment"] =
        R"({"mpc":"0.0.1","onednn":"1.0.0","device":"cuda","processor":"","threads":"999"})";
  });
  Training<ConvNorm> other(Level{"O2", DType::kF16});
  const absl::StatusOr<ResumeReport> report = other.model->LoadCheckpoint(path);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->differences.size(), 5u);
  EXPECT_THAT(report->differences, Contains(HasSubstr("threads: 999 in the file, ")));
  EXPECT_THAT(report->differences, Contains(HasSubstr("device: cuda in the file, cpu here")));
}

TEST_F(LoadTraining, OtherScalerSettingsAreReportedAndTheFilesAreUsed) {
  Training<ConvNorm> other(Level{"O2", DType::kF16}, DynamicLossScaleManager({.scale_window = 77}));
  const absl::StatusOr<ResumeReport> report = other.model->LoadCheckpoint(path_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->differences, ElementsAre("scaler.interval: 77 here, the file's 2000 is used"));
  EXPECT_EQ(StateItem(*other.model, "scaler.interval"), 2000);
}

TEST_F(LoadTraining, AnotherFixedScaleIsReportedAndTheFilesIsUsed) {
  Training<ConvNorm> saved(Level{"O2", DType::kF16}, FixedLossScaleManager({.loss_scale = 512}));
  MPC_ASSERT_OK(saved.model->Train(1, ShuffledBatches(3)));
  MPC_ASSERT_OK(saved.model->SaveCheckpoint(path_));
  Training<ConvNorm> other(Level{"O2", DType::kF16}, FixedLossScaleManager({.loss_scale = 4096}));
  const absl::StatusOr<ResumeReport> report = other.model->LoadCheckpoint(path_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->differences, ElementsAre("scaler.scale: 4096 here, the file's 512 is used"));
  EXPECT_EQ(other.model->loss_scale(), 512);
  Training<ConvNorm> same(Level{"O2", DType::kF16}, FixedLossScaleManager({.loss_scale = 512}));
  EXPECT_THAT(same.model->LoadCheckpoint(path_)->differences, IsEmpty());
}

/// Trains a weight of 1 by gradients of 4 at a rate of 1 / 8, with an optimizer that divides by the scale.
struct DividedTraining {
  explicit DividedTraining(double scale)
      : optimizer(network.TrainableParams(), {.learning_rate = 0.125, .loss_scale = scale}),
        model(network, loss, optimizer,
              {.loss_scale_manager = FixedLossScaleManager({.loss_scale = scale, .drop_overflow_update = false})}) {}
  absl::Status Train(std::int64_t epochs) {
    return model.Train(epochs, testing::Batches({{Tensor::Full({1}, 4.0), Tensor::Full({1}, 0.0)}}));
  }
  float weight() { return network.weight.Value()->ToFloats()[0]; }

  testing::Probe network;
  testing::SumLoss loss;
  nn::SGD optimizer;
  Model model;
};

TEST_F(LoadTraining, AScaleThatTheOptimizerDividesByStays) {
  for (const double scale : {4096.0, 64.0}) {
    DividedTraining saved(512), other(scale);
    MPC_ASSERT_OK(saved.Train(1));
    MPC_ASSERT_OK(saved.model.SaveCheckpoint(path_));
    const absl::StatusOr<ResumeReport> report = other.model.LoadCheckpoint(path_);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->differences,
                ElementsAre(absl::StrCat("scaler.scale: ", scale,
                                         " stays, by which the optimizer divides, and the file's 512 is not used")));
    EXPECT_EQ(other.model.loss_scale(), scale);
    const float before = other.weight();
    MPC_ASSERT_OK(other.Train(2));
    EXPECT_EQ(other.weight(), before - 0.5f);
  }
}

TEST_F(LoadTraining, EpochsCountFromTheBeginningOfTheRun) {
  Training<ConvNorm> done(Level{"O2", DType::kF16});
  ASSERT_TRUE(done.model->LoadCheckpoint(path_).ok());
  testing::LossRecorder losses;
  MPC_ASSERT_OK(done.model->Train(1, ShuffledBatches(3), {losses}));
  EXPECT_THAT(losses.losses, IsEmpty()) << "the one epoch is done";
  MPC_ASSERT_OK(done.model->Train(1, ShuffledBatches(3), {losses}));
  EXPECT_EQ(losses.losses.size(), 3u) << "a new run";

  Training<ConvNorm> anew(Level{"O2", DType::kF16});
  ASSERT_TRUE(anew.model->LoadCheckpoint(path_, {.continue_run = false}).ok());
  testing::LossRecorder more;
  MPC_ASSERT_OK(anew.model->Train(1, ShuffledBatches(3), {more}));
  EXPECT_EQ(more.losses, losses.losses) << "the same second epoch of the data";
}

TEST_F(LoadTraining, AnotherAccumulationDropsWhatWasGathered) {
  const auto make = [](std::int64_t steps) { return ModelOptions{.amp_level = "O2", .accumulation_steps = steps}; };
  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {});
  Model two(network, loss, optimizer, make(2));
  MPC_ASSERT_OK(two.Train(1, ShuffledBatches(3)));
  MPC_ASSERT_OK(two.SaveCheckpoint(folder_ / "two"));
  Model one(network, loss, optimizer, make(1));
  const absl::StatusOr<ResumeReport> report = one.LoadCheckpoint(folder_ / "two");
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->differences, ElementsAre("accumulation_steps: 2 in the file, 1 here",
                                               "gradients that have been accumulated are dropped"));
  MPC_EXPECT_OK(one.Train(2, ShuffledBatches(3)));
}

TEST_F(LoadTraining, FilesDoNotTellWhereAProcessBegan) {
  // The last batch is smaller: a process that begins there compiles no other Program.
  const data::Dataset dataset = testing::Batches(
      {testing::MakeBatch({2, 6, 6}, 8, 0), testing::MakeBatch({2, 6, 6}, 8, 1), testing::MakeBatch({2, 6, 6}, 4, 2)});
  Training<ConvNorm> whole(Level{"O1", DType::kF16});
  MPC_ASSERT_OK(whole.model->Train(1, dataset, {SaveAt(2, folder_ / "at2"), SaveAt(3, folder_ / "whole")}));
  Training<ConvNorm> resumed(Level{"O1", DType::kF16});
  ASSERT_TRUE(resumed.model->LoadCheckpoint(folder_ / "at2").ok());
  MPC_ASSERT_OK(resumed.model->Train(1, dataset, {SaveAt(1, folder_ / "resumed")}));
  EXPECT_TRUE(testing::ReadAll(folder_ / "whole") == testing::ReadAll(folder_ / "resumed"));
}

TEST_F(LoadTraining, AnEpochOfAnotherSizeIsAnErrorInItsMiddle) {
  Training<ConvNorm> training(Level{"O2", DType::kF16});
  MPC_ASSERT_OK(training.model->Train(1, ShuffledBatches(4), {SaveAt(2, folder_ / "at2")}));
  Training<ConvNorm> other(Level{"O2", DType::kF16});
  ASSERT_TRUE(other.model->LoadCheckpoint(folder_ / "at2").ok());
  EXPECT_THAT(std::string(other.model->Train(1, ShuffledBatches(5)).message()),
              HasSubstr("the checkpoint is at step 2 of an epoch of 4 steps, this data set has 5"));
  MPC_EXPECT_OK(other.model->Train(1, ShuffledBatches(4)));
  EXPECT_EQ(other.model->global_step(), 4);
}

TEST_F(LoadTraining, APredictorTakesWhatItNeeds) {
  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  Model model(network, loss, {.amp_level = "O2"});
  const absl::StatusOr<ResumeReport> report = model.LoadCheckpoint(path_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(testing::ParametersOf(network), testing::ParametersOf(*training_->network));
}

TEST_F(LoadTraining, LoadParamIntoNetTakesTheWeightsOfATraining) {
  ConvNorm network;
  const absl::StatusOr<LoadReport> report = LoadParamIntoNet(network, path_);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(testing::ParametersOf(network), testing::ParametersOf(*training_->network));
  const absl::StatusOr<std::map<std::string, Tensor>> weights = LoadCheckpoint(path_);
  ASSERT_TRUE(weights.ok());
  EXPECT_EQ(weights->size(), 7u);
  ConvNorm another;
  EXPECT_TRUE(LoadParamIntoNet(another, *weights).ok());
  EXPECT_EQ(testing::ParametersOf(another), testing::ParametersOf(network));
}

}  // namespace
}  // namespace mpc
