// AMP-37: a network that trains in f16 with loss scaling and does not without.
#include "models/faint.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

struct Outcome {
  double accuracy = 0;
  bool moved = false;  ///< any parameter
};

/// Two epochs on the shipped digits.
Outcome TrainFaint(const std::string& level, LossScaleChoice scale) {
  SetSeed(5);
  models::FaintNet network(10, 8 * 8, 64);
  models::FaintLoss loss;
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.03 / models::FaintLoss::kWeight});
  Model model(network, loss, optimizer, {.metrics = {"accuracy"}, .amp_level = level, .loss_scale_manager = scale});
  const Tensor before = *network.GetParameter("fc1.weight")->Value();
  const data::DigitsOptions small{.image_size = 8};
  MPC_EXPECT_OK(model.Train(3, data::Digits(data::Split::kTrain, small).Shuffle(1).Batch(32)));
  auto metrics = model.Eval(data::Digits(data::Split::kTest, small).Batch(32));
  MPC_EXPECT_OK(metrics.status());
  return {metrics.ok() ? metrics->at("accuracy") : 0,
          network.GetParameter("fc1.weight")->Value()->ToFloats() != before.ToFloats()};
}

TEST(FaintNetwork, AMP_37_TrainsInFullPrecision) { EXPECT_GT(TrainFaint("O0", nullptr).accuracy, 0.85); }

TEST(FaintNetwork, AMP_37_TrainsLowWithLossScaling) {
  for (const char* level : {"O1", "O2", "O3"}) {
    EXPECT_GT(TrainFaint(level, DynamicLossScaleManager()).accuracy, 0.85) << level;
  }
}

TEST(FaintNetwork, AMP_37_StandsStillLowWithoutLossScaling) {
  for (const char* level : {"O2", "O3"}) {
    const Outcome outcome = TrainFaint(level, nullptr);
    EXPECT_FALSE(outcome.moved) << level << ": every float16 gradient is zero";
    EXPECT_LT(outcome.accuracy, 0.3) << level;
  }
}

}  // namespace
}  // namespace mpc::testing
