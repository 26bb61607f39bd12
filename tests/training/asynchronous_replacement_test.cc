// Model::Train on a device that is behind the host, while a callback replaces what steps under way were compiled with.
#include <gmock/gmock.h>

#include "tests/training/asynchronous_device.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

/// Trains while another optimizer comes before step 5 and another layer, with an optimizer for it, before step 8.
Snapshot TrainWhileReplacing(ContextOptions context) {
  context.fusion = false;
  MPC_EXPECT_OK(SetContext(context));
  Training<TwoLayers> training({"O2", DType::kF16}, FixedLossScaleManager({.loss_scale = 64}));
  TwoLayers& network = *training.network;
  const auto replace_optimizer = [&](double rate) {
    *training.optimizer = nn::Momentum(network.TrainableParams(), {.learning_rate = rate});
  };
  LambdaCallback replace({.on_train_step_begin = [&](RunContext& run) {
    if (run.global_step == 7) network.fc2 = nn::Dense(8, 3, {.has_bias = false});
    if (run.global_step == 4 || run.global_step == 7) replace_optimizer(0.1 * static_cast<double>(run.global_step));
  }});
  MPC_EXPECT_OK(training.model->Train(1, GoodBatches({6}, 10), {replace}));
  EXPECT_EQ(*training.optimizer->step(), 3);
  EXPECT_EQ(training.model->compiled().size(), 1u) << "Programs of what was replaced are given up";
  const Snapshot state = StateOf(*training.model);
  MPC_EXPECT_OK(SetContext({}));
  return state;
}

TEST(AsynchronousReplacement, StepsUnderWayFinishWithWhatTheyBeganWith) {
  UseAsynchronousDevice();
  const Snapshot cpu = TrainWhileReplacing({});
  for (const int steps : {1, 3}) {
    const Snapshot device = TrainWhileReplacing({.device = "cuda", .steps_per_launch = steps});
    EXPECT_EQ(Differences(cpu, device), std::vector<std::string>{}) << steps;
  }
}

}  // namespace
}  // namespace mpc::testing
