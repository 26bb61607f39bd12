// The frontier of precision of a Model, and training with a precision of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "frontend/train/model.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::ConvNorm;
using testing::GoodBatches;
using ::testing::HasSubstr;
using testing::TwoLayers;

const Shape kSmallPictures = {2, 6, 6};

/// [N, 6] -> [N, 3]: no operation has a kink, so that errors are of first order.
class SmoothLayers : public nn::Cell {
 public:
  MPC_CELL(SmoothLayers, fc1, activation, fc2)
  Tensor Construct(Tensor x) { return fc2(activation(fc1(x))); }
  nn::Dense fc1{6, 8};
  nn::Tanh activation;
  nn::Dense fc2{8, 3};
};

/// [N, 6] -> [N, 3], where a reshape rounds one tensor and nothing else.
class ReshapedLayers : public nn::Cell {
 public:
  MPC_CELL(ReshapedLayers, fc1, activation, fc2)
  Tensor Construct(Tensor x) {
    const std::int64_t rows = x.shape().at(0);
    const Tensor wide = ops::reshape(fc1(x), {rows, 2, 4});
    return fc2(ops::reshape(activation(wide), {rows, 8}));
  }
  nn::Dense fc1{6, 8};
  nn::Tanh activation;
  nn::Dense fc2{8, 3};
};

template <typename Network>
struct FrontierTraining {
  explicit FrontierTraining(const std::string& level, const std::string& dtype = "bf16")
      : model(network, loss, optimizer, Options(level, dtype)) {}
  static ModelOptions Options(const std::string& level, const std::string& dtype) {
    ModelOptions options{.amp = {.level = level}};
    if (level == "auto") options.amp.dtype = dtype;
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
    EXPECT_LT(frontier->points[i].predicted.gradient, frontier->points[i - 1].predicted.gradient);
    EXPECT_LE(frontier->points[i].predicted.loss, frontier->points[i - 1].predicted.loss) << "low slots are nested";
  }
  EXPECT_GT(frontier->points.front().measured.rms.gradient, 1e-4) << "bf16 keeps 8 bits";
  EXPECT_GT(frontier->points.front().measured.rms.loss, 0);
  EXPECT_EQ(frontier->points.back().measured.bound.gradient, 0) << "every slot is f32";
  EXPECT_EQ(frontier->points.back().measured.bound.loss, 0);
  EXPECT_EQ(frontier->points.back().low_slots, 0);
  ASSERT_EQ(frontier->chosen, frontier->points.size() - 1);
  EXPECT_THAT(frontier->Table(), HasSubstr("chosen"));
  std::vector<std::vector<float>> after;
  for (const Parameter& parameter : training.model.AllState()) after.push_back(parameter.Value()->ToFloats());
  EXPECT_EQ(after, before);
}

TEST(ModelFrontier, EstimatesOfSlotsAreWithinAFactorOfTwoOfWhatIsMeasured) {
  for (const char* dtype : {"bf16", "f16"}) {
    SCOPED_TRACE(dtype);
    FrontierTraining<SmoothLayers> training("auto", dtype);
    PrecisionFrontierOptions options = OnFastDevice();
    options.directions = 8;
    const absl::StatusOr<PrecisionFrontier> estimated =
        training.model.FindPrecisionFrontier(GoodBatches({6}, 4), options);
    ASSERT_TRUE(estimated.ok()) << estimated.status();
    EXPECT_EQ(estimated->measured_slots, 0);
    options.slot_errors = SlotErrorSource::kMeasured;
    const absl::StatusOr<PrecisionFrontier> measured =
        training.model.FindPrecisionFrontier(GoodBatches({6}, 4), options);
    ASSERT_TRUE(measured.ok()) << measured.status();
    EXPECT_EQ(measured->measured_slots, measured->open_slots);
    ASSERT_GE(measured->open_slots, 2);
    for (const auto& [slot, error] : measured->slot_errors) {
      const double estimate = estimated->slot_errors.at(slot).gradient;
      EXPECT_GT(error.gradient, 0) << slot;
      EXPECT_GT(estimate, error.gradient / 2) << slot;
      EXPECT_LT(estimate, error.gradient * 2) << slot;
    }
  }
}

TEST(ModelFrontier, FindsTheFastestCornerThatKeepsAnErrorAmongFewRuns) {
  FrontierTraining<ConvNorm> training("auto");
  PrecisionFrontierOptions options = OnFastDevice();
  options.points = 100;
  const data::Dataset batches = GoodBatches(kSmallPictures, 2);
  const absl::StatusOr<PrecisionFrontier> all = training.model.FindPrecisionFrontier(batches, options);
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(static_cast<std::int64_t>(all->points.size()), all->corners);
  ASSERT_GE(all->corners, 3);
  const PrecisionFrontier::Point& middle = all->points[all->points.size() / 2];
  options.max_gradient_error = middle.measured.bound.gradient * 1.0001;
  const absl::StatusOr<PrecisionFrontier> found = training.model.FindPrecisionFrontier(batches, options);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE(found->chosen.has_value());
  const PrecisionFrontier::Point& chosen = found->points[*found->chosen];
  EXPECT_TRUE(chosen.Keeps(options));
  EXPECT_GE(chosen.low_slots, middle.low_slots);
  const absl::StatusOr<MeasuredErrors> again = training.model.MeasurePrecisionErrors(chosen.precision, batches, 2);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->largest.gradient, chosen.measured.largest.gradient);
  EXPECT_EQ(again->bound.loss, chosen.measured.bound.loss);
  options.points = 1;
  const absl::StatusOr<PrecisionFrontier> exact = training.model.FindPrecisionFrontier(batches, options);
  ASSERT_TRUE(exact.ok()) << exact.status();
  ASSERT_EQ(exact->points.size(), 1U);
  EXPECT_EQ(exact->points.front().low_slots, 0);
}

TEST(ModelFrontier, EstimatesTheErrorOfTheLossOfEachSlot) {
  for (const char* dtype : {"bf16", "f16"}) {
    SCOPED_TRACE(dtype);
    FrontierTraining<SmoothLayers> training("auto", dtype);
    PrecisionFrontierOptions options = OnFastDevice();
    options.batches = 32;  // the error of a loss is one draw a batch
    const data::Dataset batches = GoodBatches({6}, 32);
    const absl::StatusOr<PrecisionFrontier> estimated = training.model.FindPrecisionFrontier(batches, options);
    ASSERT_TRUE(estimated.ok()) << estimated.status();
    options.slot_errors = SlotErrorSource::kMeasured;
    const absl::StatusOr<PrecisionFrontier> measured = training.model.FindPrecisionFrontier(batches, options);
    ASSERT_TRUE(measured.ok()) << measured.status();
    ASSERT_GE(measured->open_slots, 2);
    for (const auto& [slot, error] : measured->slot_errors) {
      const double estimate = estimated->slot_errors.at(slot).loss;
      EXPECT_GT(error.loss, 0) << slot;
      EXPECT_GT(estimate, error.loss / 2) << slot;
      EXPECT_LT(estimate, error.loss * 2) << slot;
    }
  }
}

/// Signs within a tensor count: independent roundings of the same sizes would have another sum.
TEST(ModelFrontier, EstimatesWhatRoundingOneTensorDoesToTheLossWithinAFewPercent) {
  FrontierTraining<ReshapedLayers> training("auto");
  PrecisionFrontierOptions options = OnFastDevice();
  options.batches = 1;
  int reshapes = 0;
  for (std::int64_t batch = 0; batch < 4; ++batch) {
    const data::Dataset rows = testing::Batches({testing::MakeBatch({6}, 8, batch)});
    options.slot_errors = SlotErrorSource::kEstimated;
    const absl::StatusOr<PrecisionFrontier> estimated = training.model.FindPrecisionFrontier(rows, options);
    ASSERT_TRUE(estimated.ok()) << estimated.status();
    options.slot_errors = SlotErrorSource::kMeasured;
    const absl::StatusOr<PrecisionFrontier> measured = training.model.FindPrecisionFrontier(rows, options);
    ASSERT_TRUE(measured.ok()) << measured.status();
    for (const auto& [slot, error] : measured->slot_errors) {
      if (slot.find("#reshape.") == std::string::npos) continue;
      ++reshapes;
      EXPECT_NEAR(estimated->slot_errors.at(slot).loss, error.loss, 0.05 * error.loss + 1e-6) << slot;
    }
  }
  EXPECT_EQ(reshapes, 8);
}

TEST(ModelFrontier, KeepsBothErrorsWhereBothAreLimited) {
  FrontierTraining<ConvNorm> training("auto");
  PrecisionFrontierOptions options = OnFastDevice();
  options.points = 100;
  const data::Dataset batches = GoodBatches(kSmallPictures, 2);
  const absl::StatusOr<PrecisionFrontier> all = training.model.FindPrecisionFrontier(batches, options);
  ASSERT_TRUE(all.ok()) << all.status();
  double any_gradient = 0;
  for (const PrecisionFrontier::Point& point : all->points) {
    any_gradient = std::max(any_gradient, point.measured.bound.gradient);
  }
  const double fast_loss = all->points.front().measured.bound.loss;
  const auto choose = [&](double gradient, double loss) {
    options.max_gradient_error = gradient;
    options.max_loss_error = loss;
    const absl::StatusOr<PrecisionFrontier> frontier = training.model.FindPrecisionFrontier(batches, options);
    EXPECT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_TRUE(frontier.ok() && frontier->chosen.has_value());
    return frontier.ok() && frontier->chosen.has_value() ? frontier->points[*frontier->chosen]
                                                         : PrecisionFrontier::Point();
  };
  EXPECT_EQ(choose(any_gradient, fast_loss).low_slots, all->points.front().low_slots);
  EXPECT_EQ(choose(any_gradient, 1e-12).low_slots, 0);
  EXPECT_EQ(choose(1e-12, fast_loss).low_slots, 0);
  // The error of the loss may rise from corner to corner: all of them are looked at.
  const auto keeps = [&](const PrecisionFrontier::Point& point) { return point.measured.bound.loss <= fast_loss / 2; };
  const auto first = std::find_if(all->points.begin(), all->points.end(), keeps);
  EXPECT_EQ(choose(any_gradient, fast_loss / 2).low_slots, first->low_slots);
}

TEST(ModelFrontier, MayBeWeighedByTheErrorOfTheLoss) {
  FrontierTraining<ConvNorm> training("auto");
  PrecisionFrontierOptions options = OnFastDevice();
  options.points = 100;
  const data::Dataset batches = GoodBatches(kSmallPictures, 2);
  const absl::StatusOr<PrecisionFrontier> by_gradient = training.model.FindPrecisionFrontier(batches, options);
  ASSERT_TRUE(by_gradient.ok()) << by_gradient.status();
  options.weighed = FrontierError::kLoss;
  const absl::StatusOr<PrecisionFrontier> frontier = training.model.FindPrecisionFrontier(batches, options);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  ASSERT_GE(frontier->points.size(), 3U);
  for (std::size_t i = 1; i < frontier->points.size(); ++i) {
    EXPECT_GT(frontier->points[i].predicted_seconds, frontier->points[i - 1].predicted_seconds);
    EXPECT_LT(frontier->points[i].predicted.loss, frontier->points[i - 1].predicted.loss);
    EXPECT_LE(frontier->points[i].predicted.gradient, frontier->points[i - 1].predicted.gradient);
  }
  EXPECT_EQ(frontier->points.back().measured.bound.loss, 0);
  const PrecisionFrontier::Point &fastest = frontier->points.front(), &same = by_gradient->points.front();
  ASSERT_EQ(fastest.precision.slots, same.precision.slots) << "no error weighs there";
  EXPECT_NEAR(fastest.predicted.gradient, same.predicted.gradient, 1e-5 * same.predicted.gradient);
  EXPECT_NEAR(fastest.predicted.loss, same.predicted.loss, 1e-5 * same.predicted.loss);
}

/// Steps with their update are timed: the optimizer's state and the loss scale are as before.
TEST(ModelFrontier, TrainingGoesOnAsIfNoFrontierHadBeenFound) {
  for (const char* dtype : {"bf16", "f16"}) {
    SCOPED_TRACE(dtype);
    std::vector<testing::Snapshot> states;
    for (const bool finds : {false, true}) {
      SetSeed(1);
      FrontierTraining<ConvNorm> training("auto", dtype);
      const data::Dataset batches = GoodBatches(kSmallPictures, 2);
      for (int epoch = 0; epoch < 2; ++epoch) {
        if (finds) MPC_ASSERT_OK(training.model.FindPrecisionFrontier(batches, OnFastDevice()).status());
        MPC_ASSERT_OK(training.model.Train(1, batches));
      }
      states.push_back(testing::StateOf(training.model));
    }
    EXPECT_EQ(states[0], states[1]);
  }
}

TEST(ModelFrontier, IsFoundForAStepThatTheUserGaveAndWithinAnUpdateThatAccumulates) {
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.sparse = false, .reduction = "mean"}};
  nn::Momentum optimizer{network.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9}};
  nn::WithLossCell with_loss(network, loss);
  nn::TrainOneStepCell step(with_loss, optimizer);
  Model of_step(step, FrontierTraining<TwoLayers>::Options("auto", "bf16"));
  ModelOptions accumulating = FrontierTraining<TwoLayers>::Options("auto", "f16");
  accumulating.accumulation_steps = 2;
  Model of_network(network, loss, optimizer, accumulating);
  for (Model* model : {&of_step, &of_network}) {
    MPC_ASSERT_OK(model->Train(1, GoodBatches({6}, 3)));
    const testing::Snapshot before = testing::StateOf(*model);
    const absl::StatusOr<PrecisionFrontier> frontier =
        model->FindPrecisionFrontier(GoodBatches({6}, 2), OnFastDevice());
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_GT(frontier->points.front().measured_seconds, 0);
    EXPECT_EQ(testing::StateOf(*model), before);
  }
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
  EXPECT_THAT(refusal({.directions = 0}), HasSubstr("directions is at least 1, not 0"));
  EXPECT_THAT(refusal({.max_gradient_error = 0.0}), HasSubstr("max_gradient_error is a number above 0, not 0"));
  EXPECT_THAT(refusal({.max_loss_error = -1.0}), HasSubstr("max_loss_error is a number above 0, not -1"));
  EXPECT_THAT(refusal({.max_gradient_error = 1.0, .max_loss_error = std::numeric_limits<double>::infinity()}),
              HasSubstr("max_loss_error is a number above 0, not inf"));
}

TEST(PrecisionFrontier, RankCorrelationIsSpearmans) {
  PrecisionFrontier frontier;
  for (const auto& [predicted, measured] : std::vector<std::pair<double, double>>{{1, 10}, {2, 30}, {3, 20}, {4, 40}}) {
    PrecisionFrontier::Point point;
    point.predicted = {.gradient = predicted, .loss = predicted};
    point.measured.rms = {.gradient = measured, .loss = -measured};
    frontier.points.push_back(point);
  }
  EXPECT_NEAR(frontier.RankCorrelation(FrontierError::kGradient), 0.8, 1e-12);
  EXPECT_NEAR(frontier.RankCorrelation(FrontierError::kLoss), -0.8, 1e-12);
}

}  // namespace
}  // namespace mpc
