// Training steps that call a gradient scaler themselves, with gradients that the test chooses.
#pragma once

#include <utility>
#include <vector>

#include "tests/training/probe.h"

namespace mpc::testing {

/// weight * x, summed: the gradient of the weight is x.
inline Tensor ProbeLoss(Probe& network, const Tensor& x) { return reduce_sum(network(x)); }

/// Batches of one column.
inline data::Dataset OneColumn(const std::vector<Tensor>& batches) {
  std::vector<data::Row> rows;
  for (const Tensor& batch : batches) rows.push_back({batch});
  return data::GeneratorDataset(std::move(rows), {"x"});
}

/// One weight, one loss, SGD at rate 1; `Scaler` is stepped and updated.
template <typename Scaler>
class ScalerStep : public nn::TrainingStep {
 public:
  MPC_CELL(ScalerStep, network)
  explicit ScalerStep(const Scaler& given, std::int64_t size = 1)
      : network(size), optimizer(network.TrainableParams(), {.learning_rate = 1.0}), scaler(given) {}

  Tensor Construct(Tensor x) {
    const Tensor loss = ProbeLoss(network, x);
    const Tensor scaled = scaler.Scale(loss);
    const bool stepped = scaler.Step(optimizer, ops::Backward(scaled, optimizer.parameters()));
    return ops::Depend(loss, stepped && scaler.Update());
  }

  /// One step whose gradient is `gradient` in every element.
  absl::Status Run(float gradient) { return (*this)(Tensor::Full(network.weight.shape(), gradient)).status(); }
  float Weight() const { return network.weight.Value()->ToFloats().front(); }

  Probe network;
  nn::SGD optimizer;
  Scaler scaler;
};

/// Two weights, two losses, two optimizers, one scaler.
template <typename Scaler>
class TwoOptimizerScalerStep : public nn::TrainingStep {
 public:
  MPC_CELL(TwoOptimizerScalerStep, first, second)
  explicit TwoOptimizerScalerStep(const Scaler& given) : scaler(given) {}

  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = ProbeLoss(first, x);
    const Tensor loss_y = ProbeLoss(second, y);
    const std::vector<Tensor> of_x = ops::Backward(scaler.Scale(loss_x), optimizer_x.parameters());
    const std::vector<Tensor> of_y = ops::Backward(scaler.Scale(loss_y), optimizer_y.parameters());
    const bool stepped = scaler.Step(optimizer_x, of_x) && scaler.Step(optimizer_y, of_y);
    return ops::Depend(loss_x + loss_y, stepped && scaler.Update());
  }

  absl::Status Run(float x, float y) { return (*this)(Tensor::Full({1}, x), Tensor::Full({1}, y)).status(); }

  Probe first;
  Probe second;
  nn::SGD optimizer_x{first.TrainableParams(), {.learning_rate = 1.0}};
  nn::SGD optimizer_y{second.TrainableParams(), {.learning_rate = 1.0}};
  Scaler scaler;
};

}  // namespace mpc::testing
