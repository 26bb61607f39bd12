// Schedules that change at milestones. Expected rates are those of PyTorch 2.15.
#include "frontend/nn/milestone_schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/frontend/error_of.h"
#include "tests/training/probe.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::HasSubstr;
using testing::Probe;

/// The rate after `step` updates.
class RateOf : public nn::Cell {
 public:
  MPC_CELL(RateOf)
  explicit RateOf(nn::LearningRate rate) : rate_(std::move(rate)) {}
  Tensor Construct(const Tensor& step) { return rate_.ValueAt(step); }

 private:
  nn::LearningRate rate_;
};

/// Rates of steps 0 to count - 1.
std::vector<float> RatesBefore(const nn::LearningRate& rate, int count) {
  RateOf cell(rate);
  std::vector<float> rates;
  for (int step = 0; step < count; ++step) rates.push_back(cell(Tensor::Scalar<std::int32_t>(step)).Item<float>());
  return rates;
}

TEST(MultiStep, IsPyTorchs) {
  // Rates are rounded once.
  EXPECT_THAT(RatesBefore(nn::MultiStep({.learning_rate = 0.5, .decay_rate = 0.1, .milestones = {2, 3, 7}}), 9),
              ElementsAre(0.5f, 0.5f, 0.05f, 0.005f, 0.005f, 0.005f, 0.005f, 0.0005f, 0.0005f));
  EXPECT_THAT(RatesBefore(nn::MultiStep({.learning_rate = 1, .decay_rate = 2, .milestones = {1}}), 3),
              ElementsAre(1, 2, 2));
}

TEST(MultiStep, AMilestoneMayLieBeyondTheLastStep) {
  const auto last = std::int64_t{1} << 40;
  EXPECT_THAT(RatesBefore(nn::MultiStep({.milestones = {1, last}}), 2), ElementsAre(0.1f, 0.01f));
}

TEST(PiecewiseConstant, IsMindSpores) {
  EXPECT_THAT(RatesBefore(nn::PiecewiseConstant({.milestones = {2, 5, 6}, .learning_rates = {0.1, 0.05, 0.3}}), 8),
              ElementsAre(0.1f, 0.1f, 0.05f, 0.05f, 0.05f, 0.3f, 0.3f, 0.3f));
  EXPECT_THAT(RatesBefore(nn::PiecewiseConstant({.milestones = {1}, .learning_rates = {0}}), 2), ElementsAre(0, 0));
}

TEST(SequentialSchedule, IsPyTorchs) {
  const nn::LearningRate rate = nn::SequentialSchedule(
      {.schedules = {[](Tensor step) { return (step + 1.0) * 0.125; },
                     nn::StepDecay({.learning_rate = 0.5, .decay_rate = 0.1, .step_size = 2}), 0.25},
       .milestones = {3, 7}});
  EXPECT_THAT(RatesBefore(rate, 10),
              ElementsAre(0.125f, 0.25f, 0.375f, 0.5f, 0.5f, ::testing::FloatNear(0.05f, 4 * 0x1p-24f),
                          ::testing::FloatNear(0.05f, 4 * 0x1p-24f), 0.25f, 0.25f, 0.25f));
  // One of them may be such a schedule.
  const nn::LearningRate nested = nn::SequentialSchedule({.schedules = {1.0, rate}, .milestones = {1}});
  EXPECT_THAT(RatesBefore(nested, 3), ElementsAre(1, 0.125f, 0.25f));
}

TEST(MilestoneSchedules, MoveAWeightInAStep) {
  Probe network;
  testing::SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(),
                    {.learning_rate = nn::MultiStep({.learning_rate = 0.5, .decay_rate = 0.5, .milestones = {1, 2}})});
  Model model(network, loss, optimizer);
  const data::Row row = {Tensor::Full({1}, 1.0), Tensor::Full({1}, 0.0)};
  MPC_ASSERT_OK(model.Train(1, testing::Batches({row, row, row})));
  EXPECT_EQ(network.weight.Value()->Item<float>(), -(0.5f + 0.25f + 0.125f));
  EXPECT_EQ(model.compiled().size(), 1u);
}

TEST(MilestoneSchedules, RefuseByName) {
  Probe network;
  const auto error = [&](const nn::LearningRate& rate) {
    return ErrorOf(nn::SGD({network.weight}, {.learning_rate = rate}).status());
  };
  EXPECT_THAT(error(nn::MultiStep({})),
              HasSubstr("MultiStep: milestones must be positive, increasing and at least one, got []"));
  for (const std::vector<std::int64_t>& milestones : {std::vector<std::int64_t>{0, 1}, {-3}, {2, 2}, {5, 4}}) {
    EXPECT_THAT(error(nn::MultiStep({.milestones = milestones})), HasSubstr("positive, increasing and at least one"));
  }
  EXPECT_THAT(error(nn::MultiStep({.milestones = {5, 4}})), HasSubstr("got [5, 4]"));
  EXPECT_THAT(error(nn::MultiStep({.decay_rate = 0, .milestones = {1}})),
              HasSubstr("MultiStep: decay_rate must be a finite number > 0, got 0"));
  EXPECT_THAT(error(nn::MultiStep({.learning_rate = -1, .milestones = {1}})),
              HasSubstr("MultiStep: learning_rate must be a finite number >= 0, got -1"));
  EXPECT_THAT(error(nn::MultiStep({.decay_rate = 1e30, .milestones = {1, 9}})),
              HasSubstr("MultiStep: the rate from milestone 9 on must be a finite number >= 0, got 1e+59"));
  EXPECT_THAT(error(nn::PiecewiseConstant({.milestones = {1, 2}, .learning_rates = {0.1}})),
              HasSubstr("PiecewiseConstant: the number of learning_rates must be 2, one for each milestone, got 1"));
  EXPECT_THAT(error(nn::PiecewiseConstant({.milestones = {1}, .learning_rates = {-0.5}})),
              HasSubstr("PiecewiseConstant: learning_rates[0] must be a finite number >= 0, got -0.5"));
  EXPECT_THAT(error(nn::SequentialSchedule({.schedules = {0.1}, .milestones = {1}})),
              HasSubstr("SequentialSchedule: the number of schedules must be 2, one more than milestones, got 1"));
  EXPECT_THAT(error(nn::SequentialSchedule({.schedules = {0.1}})),
              HasSubstr("SequentialSchedule: milestones must be positive"));
  EXPECT_THAT(error(nn::SequentialSchedule({.schedules = {0.1, nn::StepDecay({.step_size = 0})}, .milestones = {1}})),
              HasSubstr("StepDecay: step_size must be at least 1, got 0"));
}

}  // namespace
}  // namespace mpc
