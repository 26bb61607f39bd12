// Optimizers whose rules are operations of the graph, against their formulas in f64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/frontend/error_of.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/resume_support.h"
#include "tests/training/several_losses.h"

namespace mpc {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Level;
using testing::Probe;
using testing::SumLoss;

constexpr int kSteps = 6;
constexpr double kStart = 1.5;

using Maker = std::function<std::unique_ptr<nn::Optimizer>(std::vector<Parameter>)>;

template <typename Optimizer, typename Options>
Maker Make(const Options& options) {
  return [options](std::vector<Parameter> parameters) {
    return std::make_unique<Optimizer>(std::move(parameters), options);
  };
}

/// Exact in f16, and 0 at one step.
double GradientAt(int step) { return 0.5 * step - 1.0; }

/// Trains one weight with known gradients; returns it after every step.
std::vector<double> Weights(const Maker& make, const Level& level, LossScaleChoice scale) {
  Probe network(1, kStart);
  SumLoss loss;
  const std::unique_ptr<nn::Optimizer> optimizer = make(network.TrainableParams());
  Model model(network, loss, *optimizer,
              {.amp_level = level.level, .loss_scale_manager = std::move(scale), .amp_dtype = level.dtype});
  std::vector<double> weights;
  for (int step = 0; step < kSteps; ++step) {
    const auto gradient = static_cast<float>(GradientAt(step));
    MPC_EXPECT_OK(model.Train(1, testing::Batches({{Tensor::From({gradient}, {1}), Tensor::From({0.0f}, {1})}})));
    weights.push_back(network.weight.Value()->Item<double>());
  }
  EXPECT_EQ(*optimizer->step(), kSteps);
  return weights;
}

/// (weight, gradient) -> new weight, in f64. Made anew for each training, as it holds the slots.
using Rule = std::function<double(double, double)>;

void ExpectFollows(const Maker& make, const std::function<Rule()>& rule) {
  const LossScaleChoice scale = FixedLossScaleManager({.loss_scale = 8});
  for (const auto& [level, manager] : {std::pair<Level, LossScaleChoice>{{"O0", {}}, nullptr},
                                       {{"O0", {}}, scale},
                                       {{"O2", DType::kF16}, scale},
                                       {{"O2", DType::kBF16}, scale}}) {
    const std::vector<double> actual = Weights(make, level, manager);
    const Rule next = rule();
    double weight = kStart;
    for (int step = 0; step < kSteps; ++step) {
      weight = next(weight, GradientAt(step));
      // Weights stay below 4. A step rounds the weight once, and its move, which is below 1, a few times.
      EXPECT_NEAR(actual[static_cast<std::size_t>(step)], weight, (step + 1) * 8 * 0x1p-24)
          << level.level << " step " << step;
    }
  }
}

TEST(RMSProp, PlainWithMomentumAndWithDecay) {
  for (double momentum : {0.0, 0.5}) {
    for (double weight_decay : {0.0, 0.25}) {
      ExpectFollows(Make<nn::RMSProp>(nn::RMSPropOptions{
                        .learning_rate = 0.1, .decay = 0.75, .momentum = momentum, .weight_decay = weight_decay}),
                    [=] {
                      return [=, s = 1.0, m = 0.0](double w, double g) mutable {
                        g += weight_decay * w;
                        s = 0.75 * s + 0.25 * g * g;
                        m = momentum * m + 0.1 * g / std::sqrt(s + 1e-10);
                        return w - m;
                      };
                    });
    }
  }
}

TEST(RMSProp, CenteredDividesByTheDeviation) {
  ExpectFollows(Make<nn::RMSProp>(nn::RMSPropOptions{
                    .learning_rate = 0.1, .decay = 0.75, .momentum = 0.5, .epsilon = 1e-3, .centered = true}),
                [] {
                  return [s = 1.0, a = 0.0, m = 0.0](double w, double g) mutable {
                    s = 0.75 * s + 0.25 * g * g;
                    a = 0.75 * a + 0.25 * g;
                    m = 0.5 * m + 0.1 * g / std::sqrt(s - a * a + 1e-3);
                    return w - m;
                  };
                });
}

// The squares of the averages of a constant gradient meet the average of its squares but for rounding.
TEST(RMSProp, CenteredStaysFiniteWhereTheDeviationIsZero) {
  Probe network(1, kStart);
  SumLoss loss;
  nn::RMSProp optimizer(network.TrainableParams(), {.learning_rate = 1e-6, .decay = 0.1, .centered = true});
  Model model(network, loss, optimizer);
  const data::Row row = {Tensor::Full({1}, 1.7), Tensor::Full({1}, 0.0)};
  MPC_ASSERT_OK(model.Train(1, testing::Batches(std::vector<data::Row>(60, row))));
  EXPECT_TRUE(std::isfinite(network.weight.Value()->Item<double>()));
}

TEST(Lion, FollowsTheSignAndDecouplesDecay) {
  for (double weight_decay : {0.0, 0.5}) {
    ExpectFollows(Make<nn::Lion>(nn::LionOptions{
                      .learning_rate = 0.125, .beta1 = 0.5, .beta2 = 0.75, .weight_decay = weight_decay}),
                  [=] {
                    return [=, m = 0.0](double w, double g) mutable {
                      const double mixed = 0.5 * m + 0.5 * g;
                      m = 0.75 * m + 0.25 * g;
                      return w - 0.125 * ((mixed > 0 ? 1 : mixed < 0 ? -1 : 0) + weight_decay * w);
                    };
                  });
  }
}

TEST(Adagrad, AddsUpSquares) {
  for (double weight_decay : {0.0, 0.25}) {
    ExpectFollows(Make<nn::Adagrad>(nn::AdagradOptions{.learning_rate = 0.1, .weight_decay = weight_decay}), [=] {
      return [=, h = 0.1](double w, double g) mutable {
        g += weight_decay * w;
        h += g * g;
        return w - 0.1 * g / std::sqrt(h);
      };
    });
  }
}

TEST(Adagrad, MayKeepItsSums) {
  ExpectFollows(Make<nn::Adagrad>(nn::AdagradOptions{.accum = 0.25, .learning_rate = 0.1, .update_slots = false}),
                [] { return [](double w, double g) { return w - 0.1 * g / 0.5; }; });
}

TEST(Adagrad, StaysWhereSumAndGradientAreZero) {
  testing::Probe network(1, kStart);
  SumLoss loss;
  nn::Adagrad optimizer(network.TrainableParams(), {.accum = 0.0});
  Model model(network, loss, optimizer);
  MPC_ASSERT_OK(model.Train(1, testing::Batches({{Tensor::Full({1}, 0.0), Tensor::Full({1}, 0.0)}})));
  EXPECT_EQ(network.weight.Value()->Item<double>(), kStart);
}

std::map<std::string, Maker> Makers() {
  return {
      {"rmsprop", Make<nn::RMSProp>(nn::RMSPropOptions{.learning_rate = 0.01, .momentum = 0.9, .weight_decay = 0.01})},
      {"centered", Make<nn::RMSProp>(nn::RMSPropOptions{.learning_rate = 0.01, .epsilon = 1e-3, .centered = true})},
      {"lion", Make<nn::Lion>(nn::LionOptions{.learning_rate = 0.01, .weight_decay = 0.01})},
      {"adagrad", Make<nn::Adagrad>(nn::AdagradOptions{.learning_rate = 0.01, .weight_decay = 0.01})}};
}

/// ConvNorm under one of the optimizers.
struct Course {
  Course(const Maker& make, const Level& level, std::int64_t micro_steps = 1)
      : optimizer(make(network.TrainableParams())),
        model(network, loss, *optimizer,
              {.amp_level = level.level,
               .loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 256}),
               .amp_dtype = level.dtype,
               .accumulation_steps = micro_steps}) {}

  testing::ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  std::unique_ptr<nn::Optimizer> optimizer;
  Model model;
};

class GraphRulesAtLevel : public ::testing::TestWithParam<Level> {};

TEST_P(GraphRulesAtLevel, AnOverflowChangesNothingButTheScaler) {
  for (const auto& [name, make] : Makers()) {
    SCOPED_TRACE(name);
    Course course(make, GetParam());
    MPC_ASSERT_OK(course.model.Train(1, testing::GoodBatches({2, 6, 6}, 2)));
    const testing::Snapshot before = testing::StateOf(course.model);
    const data::Row bad = testing::WithBadValue(testing::MakeBatch({2, 6, 6}, 8, 3), testing::kInfinity);
    MPC_ASSERT_OK(course.model.Train(1, testing::Batches({bad})));
    EXPECT_EQ(course.model.skipped_steps(), 1);
    EXPECT_THAT(
        testing::Differences(testing::WithoutScaler(before), testing::WithoutScaler(testing::StateOf(course.model))),
        IsEmpty());
  }
}

TEST_P(GraphRulesAtLevel, TrainingThatResumesHasTheBitsOfTrainingThatDoesNotStop) {
  const data::Dataset dataset = testing::ShuffledBatches(8, /*bad=*/5);
  for (const auto& [name, make] : Makers()) {
    SCOPED_TRACE(name);
    testing::TemporaryFolder folder;
    Course whole(make, GetParam());
    MPC_ASSERT_OK(whole.model.Train(1, dataset, {testing::SaveAt(4, folder / "at4")}));
    Course resumed(make, GetParam());
    const absl::StatusOr<ResumeReport> report = resumed.model.LoadCheckpoint(folder / "at4");
    ASSERT_TRUE(report.ok()) << report.status();
    SetSeed(99);
    MPC_ASSERT_OK(resumed.model.Train(1, dataset));
    EXPECT_THAT(testing::Differences(testing::StateOf(whole.model), testing::StateOf(resumed.model)), IsEmpty());
  }
}

// The slots wait for the last micro-step, as the parameters do.
TEST_P(GraphRulesAtLevel, MicroStepsMoveNothingButTheLastOne) {
  for (const auto& [name, make] : Makers()) {
    SCOPED_TRACE(name);
    Course course(make, GetParam(), 2);
    MPC_ASSERT_OK(course.model.Train(1, testing::GoodBatches({2, 6, 6}, 2)));
    const testing::Snapshot before = testing::StateOf(course.model);
    MPC_ASSERT_OK(course.model.Train(1, testing::GoodBatches({2, 6, 6}, 1)));
    for (const std::string& changed : testing::Differences(before, testing::StateOf(course.model))) {
      EXPECT_NE(changed.rfind("optimizer.", 0), 0u) << changed;
      EXPECT_NE(changed, "fc.weight");
    }
    EXPECT_EQ(*course.optimizer->step(), 1);
    MPC_ASSERT_OK(course.model.Train(1, testing::GoodBatches({2, 6, 6}, 1)));
    EXPECT_EQ(*course.optimizer->step(), 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, GraphRulesAtLevel,
                         ::testing::Values(Level{"O0", {}}, Level{"O2", DType::kF16}, Level{"O2", DType::kBF16}),
                         testing::LevelName);

/// Two losses, of which the one of a parameter may overflow, and one Lion.
class LionOfTwoLosses : public nn::TrainingStep {
 public:
  MPC_CELL(LionOfTwoLosses, first, second)
  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = reduce_sum(first(x));
    const Tensor loss_y = reduce_sum(second(y));
    const Tensor of_x = ops::Backward(loss_x, {first.weight})[0];
    const Tensor of_y = ops::Backward(loss_y, {second.weight})[0];
    return ops::Depend(loss_x + loss_y, optimizer({of_x, of_y}));
  }
  std::vector<nn::Optimizer*> optimizers() const override { return {const_cast<nn::Lion*>(&optimizer)}; }

  Probe first, second;
  nn::Lion optimizer{{first.weight, second.weight}, {.learning_rate = 1.0}};
};

// As the updates of one optimizer are skipped together, so are its slots.
TEST(GraphRules, AnOverflowOfOneLossHoldsEverySlot) {
  LionOfTwoLosses step;
  Model model(step, {.loss_scale_manager = FixedLossScaleManager({.loss_scale = 4})});
  MPC_ASSERT_OK(model.Train(1, testing::TwoNumbers(1, 2)));
  const testing::Snapshot before = testing::StateOf(model);
  MPC_ASSERT_OK(model.Train(1, testing::TwoNumbers(testing::kInfinity, 2)));
  EXPECT_THAT(testing::Differences(testing::WithoutScaler(before), testing::WithoutScaler(testing::StateOf(model))),
              IsEmpty());
}

TEST(GraphRules, LossScaleDividesGradients) {
  const auto weights = [](const Maker& make, LossScaleChoice scale) {
    return Weights(make, {"O0", {}}, std::move(scale));
  };
  const auto fixed = FixedLossScaleManager({.loss_scale = 8, .drop_overflow_update = false});
  EXPECT_EQ(weights(Make<nn::RMSProp>(nn::RMSPropOptions{.weight_decay = 0.1}), nullptr),
            weights(Make<nn::RMSProp>(nn::RMSPropOptions{.loss_scale = 8, .weight_decay = 0.1}), fixed));
  EXPECT_EQ(weights(Make<nn::Adagrad>(nn::AdagradOptions{}), nullptr),
            weights(Make<nn::Adagrad>(nn::AdagradOptions{.loss_scale = 8}), fixed));
  EXPECT_EQ(weights(Make<nn::Lion>(nn::LionOptions{}), nullptr),
            weights(Make<nn::Lion>(nn::LionOptions{.loss_scale = 8}), fixed));
}

TEST(GraphRules, RejectBadArguments) {
  Probe network;
  const std::vector<Parameter> weight{network.weight};
  EXPECT_THAT(ErrorOf(nn::RMSProp(weight, {.decay = 2}).status()), HasSubstr("decay must be in [0, 1], got 2"));
  EXPECT_THAT(ErrorOf(nn::RMSProp(weight, {.momentum = -1}).status()), HasSubstr("momentum must be a finite number"));
  EXPECT_THAT(ErrorOf(nn::RMSProp(weight, {.epsilon = 0}).status()),
              HasSubstr("epsilon must be a finite number > 0, got 0"));
  EXPECT_THAT(ErrorOf(nn::Lion(weight, {.beta2 = 1}).status()), HasSubstr("beta1 and beta2 must be in [0, 1)"));
  EXPECT_THAT(ErrorOf(nn::Adagrad(weight, {.accum = -1}).status()), HasSubstr("accum must be a finite number >= 0"));
}

}  // namespace
}  // namespace mpc
