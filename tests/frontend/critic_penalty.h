// A critic with a penalty on its gradient by images, trained at every level.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "frontend/graph/gradient_ops.h"
#include "tests/training/training_support.h"

namespace mpc::testing {

/// The step of a critic whose gradient by images is drawn to 1 (Gulrajani et al. 2017).
template <typename Network>
class PenaltyOf : public nn::TrainingStep {
 public:
  MPC_CELL(PenaltyOf, critic)
  Tensor Construct(Tensor real, Tensor fake, Tensor share) {
    const Tensor mixed = real * share + fake * (1.0 - share);
    const Tensor slope = ops::Grad(reduce_sum(critic(mixed)), {mixed})[0];
    const Tensor penalty = reduce_mean(square(norm(reshape(slope, {4, -1}), 2, {1}) - 1.0));
    const Tensor of_fake = reduce_mean(critic(fake));
    const Tensor of_real = reduce_mean(critic(real));
    const Tensor loss = of_fake - of_real + penalty * 10.0;
    return ops::Depend(loss, optimizer(ops::Backward(loss, optimizer.parameters())));
  }
  std::vector<nn::Optimizer*> optimizers() const override { return {const_cast<nn::Adam*>(&optimizer)}; }
  Network critic;
  nn::Adam optimizer{critic.TrainableParams(), {.learning_rate = 0.01}};
};

/// Trains it at every level. Its first loss is that of f32, and it falls to less than half.
template <typename Network>
void ExpectPenaltyTrains() {
  const data::Dataset batches = data::GeneratorDataset(
      {{Values({4, 2, 6, 6}, 1), Values({4, 2, 6, 6}, 2), Tensor::From({0.25f, 0.5f, 0.75f, 1.0f}, {4, 1, 1, 1})}},
      {"real", "fake", "share"});
  float wide = 0;
  for (const char* level : {"O0", "O1", "O2", "O3", "auto"}) {
    SetSeed(3);
    PenaltyOf<Network> step;
    Model model(step, {.amp_level = level, .loss_scale_manager = FixedLossScaleManager({.loss_scale = 128})});
    History history;
    MPC_ASSERT_OK(model.Train(30, batches, {history}));
    const std::vector<double>& losses = history.of("loss");
    ASSERT_EQ(losses.size(), 30u) << level;
    if (wide == 0) wide = static_cast<float>(losses.front());
    // Some ten roundings of 2^-11 in a sum of terms as large as the loss.
    EXPECT_NEAR(losses.front(), wide, 0.02 * std::abs(wide)) << level;
    EXPECT_LT(losses.back(), losses.front() / 2) << level;
  }
}

}  // namespace mpc::testing
