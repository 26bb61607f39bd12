// AMP-30: an optimizer's fused update equals the same formula computed operation by operation.
#include <array>
#include <functional>

#include "tests/training/probe.h"

namespace mpc::testing {
namespace {

constexpr std::int64_t kSize = 5;
constexpr int kSteps = 3;
constexpr double kStart = 0.5;
constexpr double kRate = 0.125;

/// One unfused step on concrete tensors: every operation is a program of its own, which rounds to f32. `slots` are the
/// optimizer's two states, zeros at first; `step` counts from 1.
using Update = std::function<void(Tensor& parameter, std::array<Tensor, 2>& slots, const Tensor& gradient, int step)>;

void ExpectFusedEqualsUnfused(const std::function<nn::Optimizer*(Probe&)>& make_optimizer, const Update& update) {
  for (const Level& level : {Level{"O0", {}}, Level{"O2", DType::kF16}}) {
    Probe network(kSize, kStart);
    const std::unique_ptr<nn::Optimizer> optimizer(make_optimizer(network));
    SumLoss loss;
    Model model(network, loss, *optimizer,
                {.amp_level = level.level,
                 .loss_scale_manager = FixedLossScaleManager({.loss_scale = 16}),
                 .amp_dtype = level.dtype});
    Tensor parameter = Tensor::Full({kSize}, kStart);
    std::array<Tensor, 2> slots = {Tensor::Zeros({kSize}), Tensor::Zeros({kSize})};
    for (int step = 1; step <= kSteps; ++step) {
      // Numbers of f16, so that the gradient is the same at both levels.
      const Tensor gradient = Values({kSize}, step).To(DType::kF16).To(DType::kF32);
      MPC_ASSERT_OK(model.Train(1, Batches({{gradient, Tensor::Full({1}, 0.0)}})));
      update(parameter, slots, gradient, step);
    }
    EXPECT_EQ(model.skipped_steps(), 0);
    const std::vector<float> fused = network.weight.Value()->ToFloats();
    const std::vector<float> unfused = parameter.ToFloats();
    // At most twelve operations a step round numbers below 2; a fused kernel may leave roundings out.
    constexpr double kBound = 12 * kSteps * 2 * 0x1p-24;
    for (std::size_t i = 0; i < fused.size(); ++i) EXPECT_NEAR(fused[i], unfused[i], kBound) << level.level << " " << i;
    EXPECT_NE(fused, std::vector<float>(kSize, kStart));
  }
}

TEST(FusedOptimizers, AMP_30_SgdEqualsUnfused) {
  ExpectFusedEqualsUnfused(
      [](Probe& network) {
        return new nn::SGD(network.TrainableParams(), {.learning_rate = kRate, .momentum = 0.5, .weight_decay = 0.25});
      },
      [](Tensor& p, std::array<Tensor, 2>& slots, const Tensor& gradient, int step) {
        const Tensor g = gradient + 0.25 * p;
        slots[0] = step == 1 ? g : 0.5 * slots[0] + g;
        p = p - kRate * slots[0];
      });
}

TEST(FusedOptimizers, AMP_30_MomentumEqualsUnfused) {
  for (bool nesterov : {false, true}) {
    ExpectFusedEqualsUnfused(
        [&](Probe& network) {
          return new nn::Momentum(network.TrainableParams(),
                                  {.learning_rate = kRate, .momentum = 0.5, .use_nesterov = nesterov});
        },
        [&](Tensor& p, std::array<Tensor, 2>& slots, const Tensor& g, int) {
          slots[0] = 0.5 * slots[0] + g;
          p = p - kRate * (nesterov ? g + 0.5 * slots[0] : slots[0]);
        });
  }
}

TEST(FusedOptimizers, AMP_30_AdamEqualsUnfused) {
  ExpectFusedEqualsUnfused(
      [](Probe& network) {
        return new nn::Adam(network.TrainableParams(),
                            {.learning_rate = kRate, .beta1 = 0.5, .beta2 = 0.75, .eps = 0x1p-10});
      },
      [](Tensor& p, std::array<Tensor, 2>& slots, const Tensor& g, int step) {
        slots[0] = 0.5 * slots[0] + 0.5 * g;
        slots[1] = 0.75 * slots[1] + 0.25 * square(g);
        const double rate = kRate * std::sqrt(1 - std::pow(0.75, step)) / (1 - std::pow(0.5, step));
        p = p - rate * (slots[0] / (sqrt(slots[1]) + 0x1p-10));
      });
}

TEST(FusedOptimizers, AMP_30_AdamWeightDecayEqualsUnfused) {
  ExpectFusedEqualsUnfused(
      [](Probe& network) {
        return new nn::AdamWeightDecay(
            network.TrainableParams(),
            {.learning_rate = kRate, .beta1 = 0.5, .beta2 = 0.75, .eps = 0x1p-10, .weight_decay = 0.25});
      },
      [](Tensor& p, std::array<Tensor, 2>& slots, const Tensor& g, int) {
        slots[0] = 0.5 * slots[0] + 0.5 * g;
        slots[1] = 0.75 * slots[1] + 0.25 * square(g);
        p = p - kRate * (slots[0] / (sqrt(slots[1]) + 0x1p-10) + 0.25 * p);
      });
}

}  // namespace
}  // namespace mpc::testing
