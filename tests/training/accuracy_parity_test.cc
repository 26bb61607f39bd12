// AMP-37: LeNet-5 reads as many digits at every level as in f32.
#include <algorithm>
#include <numeric>

#include "models/lenet5.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

/// Part of the 360 test digits that are read right after eight epochs.
double AccuracyOf(const Level& level, unsigned seed) {
  SetSeed(seed);
  models::LeNet5 network;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  constexpr std::int64_t kEpochs = 8;
  constexpr std::int64_t kStepsPerEpoch = 45;
  nn::Momentum optimizer(
      network.TrainableParams(),
      {.learning_rate = nn::CosineDecay({.learning_rate = 0.05, .total_steps = kEpochs * kStepsPerEpoch})});
  Model model(network, loss, optimizer,
              {.metrics = {"accuracy"},
               .amp_level = level.level,
               .loss_scale_manager =
                   level.dtype == DType::kF16 ? LossScaleChoice(DynamicLossScaleManager()) : LossScaleChoice(nullptr),
               .amp_dtype = level.dtype});
  MPC_EXPECT_OK(model.Train(kEpochs, data::Digits(data::Split::kTrain).Shuffle(seed).Batch(32)));
  auto metrics = model.Eval(data::Digits(data::Split::kTest).Batch(60));
  MPC_EXPECT_OK(metrics.status());
  return metrics.ok() ? metrics->at("accuracy") : 0;
}

constexpr unsigned kSeeds = 3;

std::vector<double> AccuraciesOf(const Level& level) {
  std::vector<double> accuracies;
  for (unsigned seed = 0; seed < kSeeds; ++seed) accuracies.push_back(AccuracyOf(level, seed));
  return accuracies;
}

// The f32 runs over seeds spread; a level is as good if its mean lies no lower than their worst by more than what one
// standard deviation of 3 * 360 right-or-wrong answers makes of it, sqrt(p (1 - p) / 1080) at the p of f32.
TEST(LeNet5, AMP_37_EveryLevelIsWithinTheF32Spread) {
  const auto mean = [](const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  const std::vector<double> f32 = AccuraciesOf({"O0", {}});
  const double worst = *std::min_element(f32.begin(), f32.end());
  EXPECT_GT(worst, 0.95);
  const double deviation = std::sqrt(mean(f32) * (1 - mean(f32)) / (kSeeds * 360.0));
  for (const char* level : {"O1", "O2", "O3"}) {
    for (DType dtype : {DType::kF16, DType::kBF16}) {
      EXPECT_GE(mean(AccuraciesOf({level, dtype})), worst - deviation) << level << " " << DTypeName(dtype);
    }
  }
}

}  // namespace
}  // namespace mpc::testing
