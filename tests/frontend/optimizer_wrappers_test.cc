// LARS and EMA, against their formulas in f64.
#include "frontend/nn/optimizer_wrappers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/probe.h"
#include "tests/training/resume_support.h"

namespace mpc {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Level;
using testing::Probe;
using testing::SumLoss;

const std::vector<float> kGradient = {0.5f, -1.0f, 2.0f};

double NormOf(const std::vector<double>& x) {
  double sum = 0;
  for (double value : x) sum += value * value;
  return std::sqrt(sum);
}

data::Dataset GivenGradient(std::vector<float> gradient, std::size_t count = 1) {
  const auto size = static_cast<std::int64_t>(gradient.size());
  const data::Row row = {Tensor::From(gradient, {size}), Tensor::From({0.0f}, {1})};
  return testing::Batches(std::vector<data::Row>(count, row));
}

/// A weight of three elements that LARS around Momentum trains by one gradient at rate 0.5, decay 0.25 and momentum
/// 0.5.
std::vector<float> TrainByLars(const nn::LARSOptions& options, const Level& level, LossScaleChoice scale,
                               double loss_scale, std::size_t steps, double start = 1.5) {
  Probe network(3, start);
  SumLoss loss;
  nn::LARS optimizer(
      nn::Momentum(network.TrainableParams(),
                   {.learning_rate = 0.5, .momentum = 0.5, .weight_decay = 0.25, .loss_scale = loss_scale}),
      options);
  Model model(network, loss, optimizer,
              {.amp_level = level.level, .loss_scale_manager = std::move(scale), .amp_dtype = level.dtype});
  MPC_EXPECT_OK(model.Train(1, GivenGradient(kGradient, steps)));
  EXPECT_EQ(*optimizer.step(), static_cast<std::int64_t>(steps));
  return network.weight.Value()->ToFloats();
}

std::vector<double> LarsInF64(double coefficient, bool use_clip, int steps) {
  std::vector<double> w(3, 1.5), v(3, 0.0);
  const std::vector<double> g(kGradient.begin(), kGradient.end());
  for (int step = 0; step < steps; ++step) {
    double ratio = coefficient * NormOf(w) / (NormOf(g) + 0.25 * NormOf(w) + 1e-5);
    if (use_clip) ratio = std::min(ratio / 0.5, 1.0);
    for (std::size_t i = 0; i < 3; ++i) {
      v[i] = 0.5 * v[i] + ratio * (g[i] + 0.25 * w[i]);
      w[i] -= 0.5 * v[i];
    }
  }
  return w;
}

void ExpectNear(const std::vector<float>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  // Numbers below 4, a few roundings at each of four steps.
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 4 * 8 * 0x1p-24) << i;
}

TEST(LARS, ScalesEachGradientByNorms) {
  const LossScaleChoice fixed = FixedLossScaleManager({.loss_scale = 8});
  for (double coefficient : {0.001, 0.25, 2.0}) {
    for (bool use_clip : {false, true}) {
      SCOPED_TRACE(coefficient);
      const nn::LARSOptions options{.coefficient = coefficient, .use_clip = use_clip};
      const std::vector<double> expected = LarsInF64(coefficient, use_clip, 4);
      ExpectNear(TrainByLars(options, {"O0", {}}, nullptr, 1, 4), expected);
      ExpectNear(TrainByLars(options, {"O2", DType::kF16}, fixed, 1, 4), expected);
      ExpectNear(TrainByLars(options, {"O0", {}},
                             FixedLossScaleManager({.loss_scale = 8, .drop_overflow_update = false}), 8, 4),
                 expected);
    }
  }
}

// What the filter leaves out takes its gradient as it is, without decay, and so does a weight of zeros.
TEST(LARS, LeavesOutWhatTheFilterSaysAndZeros) {
  nn::LARSOptions none;
  none.lars_filter = [](const Parameter&) { return false; };
  ExpectNear(TrainByLars(none, {"O0", {}}, nullptr, 1, 1), {1.5 - 0.25, 1.5 + 0.5, 1.5 - 1.0});
  ExpectNear(TrainByLars({}, {"O0", {}}, nullptr, 1, 1, 0.0), {-0.25, 0.5, -1.0});
}

TEST(LARS, RejectsBadArguments) {
  Probe network;
  const nn::Momentum momentum({network.weight});
  EXPECT_THAT(ErrorOf(nn::LARS(nn::Adam({network.weight})).status()), HasSubstr("LARS cannot be used with Adam"));
  EXPECT_THAT(ErrorOf(nn::LARS(nn::Lamb({network.weight})).status()), HasSubstr("LARS cannot be used with Lamb"));
  EXPECT_THAT(ErrorOf(nn::LARS(momentum, {.epsilon = 0}).status()), HasSubstr("epsilon"));
  EXPECT_THAT(ErrorOf(nn::LARS(momentum, {.coefficient = -1}).status()), HasSubstr("coefficient"));
  EXPECT_THAT(ErrorOf(nn::LARS(nn::Momentum({network.weight}, {.momentum = -1})).status()), HasSubstr("momentum"));
  EXPECT_EQ(nn::LARS(momentum).TypeName(), "LARS of Momentum");
}

TEST(LARS, SharesTheRateOfTheOptimizerInside) {
  Probe network;
  nn::SGD inside({network.weight});
  nn::LARS optimizer(inside);
  MPC_ASSERT_OK(inside.SetLearningRate(0.25));
  EXPECT_EQ(*optimizer.learning_rate(), 0.25);
}

/// Stands before what is drawn.
struct Seed {
  Seed() { SetSeed(7); }
};

/// Two layers under SGD with averages.
struct Averaged {
  explicit Averaged(const Level& level, double decay = 0.75, std::int64_t micro_steps = 1)
      : optimizer(nn::SGD(network.TrainableParams(), {.learning_rate = 0.1}), {.decay = decay}),
        model(network, loss, optimizer,
              {.amp_level = level.level,
               .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 256}),
               .amp_dtype = level.dtype,
               .accumulation_steps = micro_steps}) {}

  std::vector<float> Weight() const { return network.fc1.weight.Value()->ToFloats(); }
  std::vector<float> Average() const { return model.State("optimizer.fc1.weight.average").Value()->ToFloats(); }

  Seed seed;
  testing::TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  nn::EMA optimizer;
  Model model;
};

class EmaAtLevel : public ::testing::TestWithParam<Level> {};

TEST_P(EmaAtLevel, AveragesFollowTheWeights) {
  Averaged training(GetParam());
  std::vector<float> start = training.Weight();
  std::vector<double> expected(start.begin(), start.end());
  for (int step = 0; step < 5; ++step) {
    MPC_ASSERT_OK(training.model.Train(1, testing::GoodBatches({6}, 1)));
    const std::vector<float> weight = training.Weight();
    const std::vector<float> average = training.Average();
    for (std::size_t i = 0; i < weight.size(); ++i) {
      expected[i] = 0.75 * expected[i] + 0.25 * static_cast<double>(weight[i]);
      ASSERT_NEAR(average[i], expected[i], (step + 1) * 2 * 0x1p-24) << "step " << step << " element " << i;
    }
  }
}

TEST_P(EmaAtLevel, ASkippedStepAndAMicroStepHoldTheAverages) {
  Averaged training(GetParam());
  MPC_ASSERT_OK(training.model.Train(1, testing::GoodBatches({6}, 2)));
  const testing::Snapshot before = testing::WithoutScaler(testing::StateOf(training.model));
  MPC_ASSERT_OK(training.model.Train(
      1, testing::Batches({testing::WithBadValue(testing::MakeBatch({6}, 8, 3), testing::kInfinity)})));
  EXPECT_EQ(training.model.skipped_steps(), 1);
  EXPECT_THAT(testing::Differences(before, testing::WithoutScaler(testing::StateOf(training.model))), IsEmpty());

  Averaged accumulating(GetParam(), 0.75, 2);
  MPC_ASSERT_OK(accumulating.model.Train(1, testing::GoodBatches({6}, 2)));
  const std::vector<float> average = accumulating.Average();
  MPC_ASSERT_OK(accumulating.model.Train(1, testing::GoodBatches({6}, 1)));
  EXPECT_EQ(accumulating.Average(), average);
  MPC_ASSERT_OK(accumulating.model.Train(1, testing::GoodBatches({6}, 1)));
  EXPECT_NE(accumulating.Average(), average);
}

// The step around the optimizer is the one that it makes without averages.
TEST_P(EmaAtLevel, TheWeightsAreThoseOfTrainingWithoutAverages) {
  Averaged averaged(GetParam());
  SetSeed(7);
  testing::TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 0.1});
  Model model(network, loss, optimizer,
              {.amp_level = GetParam().level,
               .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 256}),
               .amp_dtype = GetParam().dtype});
  MPC_ASSERT_OK(averaged.model.Train(1, testing::GoodBatches({6}, 4)));
  MPC_ASSERT_OK(model.Train(1, testing::GoodBatches({6}, 4)));
  EXPECT_THAT(testing::Differences(testing::ParametersOf(averaged.network), testing::ParametersOf(network)), IsEmpty());
}

TEST_P(EmaAtLevel, TrainingThatResumesHasTheBitsOfTrainingThatDoesNotStop) {
  testing::TemporaryFolder folder;
  const data::Dataset dataset = testing::GoodBatches({6}, 6);
  Averaged whole(GetParam());
  MPC_ASSERT_OK(whole.model.Train(1, dataset, {testing::SaveAt(3, folder / "at3")}));
  Averaged resumed(GetParam());
  const absl::StatusOr<ResumeReport> report = resumed.model.LoadCheckpoint(folder / "at3");
  ASSERT_TRUE(report.ok()) << report.status();
  MPC_ASSERT_OK(resumed.model.Train(1, dataset));
  EXPECT_THAT(testing::Differences(testing::StateOf(whole.model), testing::StateOf(resumed.model)), IsEmpty());
}

TEST_P(EmaAtLevel, EvaluatesOnTheAverages) {
  Averaged training(GetParam());
  MPC_ASSERT_OK(training.model.Train(1, testing::GoodBatches({6}, 4)));
  const Tensor input = testing::Values({4, 6}, 3);
  const testing::Snapshot before = testing::StateOf(training.model);
  const std::vector<float> own = training.model.Predict(input)->ToFloats();
  // A network whose weights are the averages.
  Averaged other(GetParam());
  for (std::size_t i = 0; i < training.optimizer.parameters().size(); ++i) {
    Parameter weight = other.optimizer.parameters()[i];
    MPC_ASSERT_OK(weight.SetData(*training.optimizer.average(i).Value()));
  }
  const std::vector<float> expected = other.model.Predict(input)->ToFloats();
  EXPECT_NE(expected, own);
  {
    const nn::AveragedWeights averaged(training.optimizer);
    MPC_ASSERT_OK(averaged.status());
    EXPECT_EQ(training.model.Predict(input)->ToFloats(), expected);
  }
  EXPECT_THAT(testing::Differences(before, testing::StateOf(training.model)), IsEmpty());
  EXPECT_EQ(training.model.Predict(input)->ToFloats(), own);
}

INSTANTIATE_TEST_SUITE_P(Levels, EmaAtLevel,
                         ::testing::Values(Level{"O0", {}}, Level{"O2", DType::kF16}, Level{"O2", DType::kBF16}),
                         testing::LevelName);

TEST(EMA, AFrozenParameterIsItsOwnAverage) {
  Averaged training({"O0", {}});
  MPC_ASSERT_OK(training.network.SetRequiresGrad("fc1", false));
  MPC_ASSERT_OK(training.model.Train(1, testing::GoodBatches({6}, 2)));
  EXPECT_EQ(training.Average(), training.Weight());
}

TEST(EMA, AFrozenParameterIsItsOwnAverageInsideLars) {
  Probe network(3, 5.0);
  Probe moving(3, 1.5);
  SumLoss loss;
  nn::SequentialCell both(moving, network);
  const nn::EMA inside(nn::SGD(both.TrainableParams(), {.learning_rate = 0.5}), {.decay = 0.5});
  nn::LARS optimizer(inside);
  MPC_ASSERT_OK(both.SetRequiresGrad("1", false));
  Model model(both, loss, optimizer);
  MPC_ASSERT_OK(model.Train(1, GivenGradient(kGradient)));
  EXPECT_EQ(inside.average(1).Value()->ToFloats(), std::vector<float>(3, 5.0f));
  const nn::AveragedWeights averaged(inside);
  MPC_ASSERT_OK(averaged.status());
  EXPECT_EQ(network.weight.Value()->ToFloats(), std::vector<float>(3, 5.0f));
}

// Averages begin where the EMA does, whatever the optimizer inside has done before.
TEST(EMA, AveragesOfATrainedOptimizerStartFromTheWeights) {
  Probe network(1, 3.0);
  SumLoss loss;
  const nn::SGD inside(network.TrainableParams(), {.learning_rate = 0.125});
  const data::Dataset ones = GivenGradient({1.0f});
  {
    nn::SGD optimizer = inside;
    MPC_ASSERT_OK(Model(network, loss, optimizer).Train(1, ones));
  }
  nn::EMA optimizer(inside, {.decay = 0.5});
  EXPECT_EQ(*optimizer.step(), 1);
  EXPECT_THAT(ErrorOf(nn::AveragedWeights(optimizer).status()), HasSubstr("no averages before the first update"));
  Model model(network, loss, optimizer);
  MPC_ASSERT_OK(model.Train(1, ones));
  EXPECT_EQ(network.weight.Value()->ToFloats()[0], 2.75f);
  EXPECT_EQ(optimizer.average(0).Value()->ToFloats()[0], (2.875f + 2.75f) / 2);
}

/// Adds two weights, the first of which is low.
class LowAndWide : public nn::Cell {
 public:
  MPC_CELL(LowAndWide, low, wide)
  explicit LowAndWide(DType dtype) : low(Tensor::Full({3}, 1.0).To(dtype)), wide(Tensor::Full({3}, 2.0)) {}
  Tensor Construct(Tensor x) { return cast(low, DType::kF32) * x + wide * x; }
  Parameter low, wide;
};

TEST(EMA, AveragesLowParametersInF32) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    LowAndWide network(dtype);
    SumLoss loss;
    nn::EMA optimizer(nn::SGD(network.TrainableParams(), {.learning_rate = 0.25}), {.decay = 0.5});
    Model model(network, loss, optimizer);
    MPC_ASSERT_OK(model.Train(1, GivenGradient(kGradient, 2)));
    // The weights and their averages are numbers of both types.
    EXPECT_EQ(network.low.Value()->ToFloats(), (std::vector<float>{0.75f, 1.5f, 0.0f}));
    EXPECT_EQ(optimizer.average(0).Value()->dtype(), DType::kF32);
    EXPECT_EQ(optimizer.average(0).Value()->ToFloats(), (std::vector<float>{0.84375f, 1.3125f, 0.375f}));
    MPC_ASSERT_OK(network.SetRequiresGrad("low", false));
    MPC_ASSERT_OK(model.Train(1, GivenGradient(kGradient)));
    EXPECT_EQ(optimizer.average(0).Value()->ToFloats(), network.low.Value()->ToFloats()) << "frozen";
    const nn::AveragedWeights averaged(optimizer);
    MPC_EXPECT_OK(averaged.status());
  }
}

TEST(EMA, HasNoAveragesBeforeTheFirstUpdate) {
  Averaged training({"O0", {}});
  const std::vector<float> weight = training.Weight();
  const nn::AveragedWeights averaged(training.optimizer);
  EXPECT_EQ(averaged.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(ErrorOf(averaged.status()), HasSubstr("no averages before the first update"));
  EXPECT_EQ(training.Weight(), weight);
}

TEST(EMA, RejectsBadArgumentsAndWrapsAWrapper) {
  Probe network;
  const nn::SGD sgd({network.weight});
  EXPECT_THAT(ErrorOf(nn::EMA(sgd, {.decay = 1.5}).status()), HasSubstr("decay must be in [0, 1], got 1.5"));
  EXPECT_EQ(nn::EMA(nn::LARS(sgd)).TypeName(), "EMA of LARS of SGD");
  EXPECT_EQ(nn::EMA(nn::EMA(sgd), {.decay = 0.5}).status().message(),
            "optimizer: EMA of EMA of SGD would keep two slots of the name average");
  EXPECT_THAT(ErrorOf(nn::EMA(nn::LARS(nn::EMA(sgd))).status()), HasSubstr("two slots of the name average"));
}

}  // namespace
}  // namespace mpc
