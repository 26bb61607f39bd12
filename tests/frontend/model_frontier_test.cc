// The frontier of precision of a Model, and training with a precision of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/train/model.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::ConvNorm;
using testing::GoodBatches;
using ::testing::HasSubstr;
using testing::TwoLayers;

const Shape kSmallPictures = {2, 6, 6};

template <typename Network>
struct FrontierTraining {
  explicit FrontierTraining(const std::string& level) : model(network, loss, optimizer, Options(level)) {}
  static ModelOptions Options(const std::string& level) {
    ModelOptions options{.amp = {.level = level}};
    if (level == "auto") options.amp.dtype = "bf16";
    options.amp.verbosity = 0;
    return options;
  }

  Network network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.sparse = false, .reduction = "mean"}};
  nn::Momentum optimizer{network.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9}};
  Model model;
};

/// Rates of a device on which every slot of a small network pays.
PrecisionFrontierOptions OnFastDevice() {
  return {.points = 4,
          .steps = 1,
          .rates = compiler::DeviceRates{
              .bytes_per_second = 1e9, .low_flops = 1e9, .f32_flops = 1e7, .seconds_per_operation = 1e-12}};
}

TEST(ModelFrontier, GoesFromTheFastestPrecisionToOneWithoutErrorAndChangesNoState) {
  FrontierTraining<ConvNorm> training("auto");
  MPC_ASSERT_OK(training.model.Train(1, GoodBatches(kSmallPictures, 1)));
  std::vector<std::vector<float>> before;
  for (const Parameter& parameter : training.model.AllState()) before.push_back(parameter.Value()->ToFloats());
  PrecisionFrontierOptions options = OnFastDevice();
  options.max_gradient_error = 1e-6;
  const absl::StatusOr<PrecisionFrontier> frontier =
      training.model.FindPrecisionFrontier(GoodBatches(kSmallPictures, 2), options);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  ASSERT_GE(frontier->points.size(), 2U);
  for (std::size_t i = 1; i < frontier->points.size(); ++i) {
    EXPECT_GT(frontier->points[i].predicted_seconds, frontier->points[i - 1].predicted_seconds);
    EXPECT_LT(frontier->points[i].predicted_error, frontier->points[i - 1].predicted_error);
  }
  EXPECT_GT(frontier->points.front().measured_error, 1e-4) << "bf16 keeps 8 bits";
  EXPECT_EQ(frontier->points.back().measured_error, 0) << "every slot is f32";
  EXPECT_EQ(frontier->points.back().low_slots, 0);
  ASSERT_EQ(frontier->chosen, frontier->points.size() - 1);
  EXPECT_THAT(frontier->Table(), HasSubstr("chosen"));
  std::vector<std::vector<float>> after;
  for (const Parameter& parameter : training.model.AllState()) after.push_back(parameter.Value()->ToFloats());
  EXPECT_EQ(after, before);
}

TEST(ModelFrontier, AChosenPrecisionIsTrainedWith) {
  FrontierTraining<ConvNorm> found("auto");
  const absl::StatusOr<PrecisionFrontier> frontier =
      found.model.FindPrecisionFrontier(GoodBatches(kSmallPictures, 1), OnFastDevice());
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  for (const PrecisionFrontier::Point& point : {frontier->points.front(), frontier->points.back()}) {
    FrontierTraining<ConvNorm> training("auto");
    MPC_ASSERT_OK(training.model.UsePrecision(point.precision, GoodBatches(kSmallPictures, 1)));
    MPC_ASSERT_OK(training.model.Train(1, GoodBatches(kSmallPictures, 1)));
    for (const auto& [slot, type] : point.precision.slots) {
      EXPECT_EQ(training.model.compiled().front()->assignment.at(slot), type) << slot;
    }
  }
}

TEST(ModelFrontier, PrecisionOfAnotherNetworkTypeOrLevelIsRefused) {
  FrontierTraining<TwoLayers> training("auto");
  const data::Dataset batches = GoodBatches({6}, 1);
  const auto refusal = [&](const compiler::ChosenPrecision& chosen) {
    return std::string(training.model.UsePrecision(chosen, batches).message());
  };
  EXPECT_THAT(refusal({"LeNet5", "bf16", {}}), HasSubstr("is of the network LeNet5, this one is TwoLayers"));
  EXPECT_THAT(refusal({"TwoLayers", "f16", {}}), HasSubstr("low type f16, this Model has bf16"));
  EXPECT_THAT(refusal({"TwoLayers", "bf16", {}}), HasSubstr("does not have twolayers"));
  FrontierTraining<TwoLayers> other("O2");
  EXPECT_THAT(other.model.UsePrecision({"TwoLayers", "f16", {}}, batches).message(), HasSubstr("level auto, not O2"));
  EXPECT_THAT(other.model.FindPrecisionFrontier(batches).status().message(), HasSubstr("level auto, not O2"));
}

TEST(ModelFrontier, OptionsOutOfRangeAreRefused) {
  FrontierTraining<TwoLayers> training("auto");
  const auto refusal = [&](const PrecisionFrontierOptions& options) {
    return std::string(training.model.FindPrecisionFrontier(GoodBatches({6}, 1), options).status().message());
  };
  EXPECT_THAT(refusal({.points = 0}), HasSubstr("points is at least 1, not 0"));
  EXPECT_THAT(refusal({.steps = 0}), HasSubstr("steps is at least 1"));
  EXPECT_THAT(refusal({.batches = -1}), HasSubstr("batches is at least 1, not -1"));
  EXPECT_THAT(refusal({.max_gradient_error = 0.0}), HasSubstr("a number above 0, not 0"));
}

TEST(PrecisionFrontier, RankCorrelationIsSpearmans) {
  PrecisionFrontier frontier;
  for (const auto& [predicted, measured] : std::vector<std::pair<double, double>>{{1, 10}, {2, 30}, {3, 20}, {4, 40}}) {
    PrecisionFrontier::Point point;
    point.predicted_error = predicted;
    point.measured_error = measured;
    frontier.points.push_back(point);
  }
  EXPECT_NEAR(frontier.RankCorrelation(), 0.8, 1e-12);
}

}  // namespace
}  // namespace mpc
