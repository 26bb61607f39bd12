// A network whose gradient is chosen by the test.
#pragma once

#include <memory>
#include <vector>

#include "tests/training/training_support.h"

namespace mpc::testing {

/// x -> weight * x: the gradient of `weight` is x times the cotangent.
class Probe : public nn::Cell {
 public:
  MPC_CELL(Probe, weight)
  explicit Probe(std::int64_t size = 1, double start = 0.0) : weight({size}, Constant(start)) {}
  Tensor Construct(Tensor x) { return weight * x; }
  Parameter weight;
};

/// sum(prediction) + sum(offset): the cotangent of the prediction is 1, whatever the offset is.
class SumLoss : public nn::LossBase {
 public:
  MPC_CELL(SumLoss)
  Tensor Construct(Tensor prediction, Tensor offset) { return reduce_sum(prediction) + reduce_sum(offset); }
};

/// Trains a Probe with SGD at rate 1: a step with gradient g moves the weight by -g.
struct ProbeTraining {
  ProbeTraining(const Level& level, LossScaleChoice scale, std::int64_t size = 1, double optimizer_loss_scale = 1.0,
                std::int64_t accumulation_steps = 1)
      : network(size),
        optimizer(network.TrainableParams(), {.learning_rate = 1.0, .loss_scale = optimizer_loss_scale}),
        model(network, loss, optimizer,
              {.amp_level = level.level,
               .loss_scale_manager = scale,
               .amp_dtype = level.dtype,
               .accumulation_steps = accumulation_steps}) {}

  /// One step whose gradient is `gradient`; `offset` is added to the loss.
  absl::Status Step(const std::vector<float>& gradient, float offset = 0.0f) {
    const auto size = static_cast<std::int64_t>(gradient.size());
    return model.Train(1, Batches({{Tensor::From(gradient, {size}), Tensor::From({offset}, {1})}}));
  }
  absl::Status Step(float gradient, float offset = 0.0f) { return Step(std::vector<float>{gradient}, offset); }
  std::vector<float> Weight() const { return network.weight.Value()->ToFloats(); }

  Probe network;
  SumLoss loss;
  nn::SGD optimizer;
  Model model;
};

/// A dynamic scaler with small numbers, for state walks.
inline LossScaleConfig DynamicScale(double init, double growth, double backoff, std::int64_t interval) {
  LossScaleConfig config;
  config.mode = LossScaleConfig::Mode::kDynamic;
  config.init = init;
  config.growth = growth;
  config.backoff = backoff;
  config.growth_interval = interval;
  return config;
}

}  // namespace mpc::testing
