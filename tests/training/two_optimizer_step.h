// A training step with two optimizers.
#pragma once

#include <cstddef>
#include <vector>

#include "mpc/mpc.h"

namespace mpc::testing {

/// Two optimizers, each with its half of the network: what the second one holds is known by tracing only.
class TwoOptimizerStep : public nn::TrainOneStepCell {
 public:
  MPC_CELL(TwoOptimizerStep)
  TwoOptimizerStep(nn::WithLossCell& network, nn::Optimizer& first, nn::Optimizer& second)
      : TrainOneStepCell(network, first), second_(second) {
    weights.insert(weights.end(), second.parameters().begin(), second.parameters().end());
  }
  Tensor Construct(Tensor data, Tensor label) {
    const ops::ValueAndGradResult result = ops::ValueAndGrad(network, weights, {data, label});
    const auto split = result.gradients.begin() + static_cast<std::ptrdiff_t>(optimizer.parameters().size());
    const bool first = optimizer(std::vector<Tensor>(result.gradients.begin(), split));
    const bool second = second_(std::vector<Tensor>(split, result.gradients.end()));
    return ops::Depend(result.value, first && second);
  }

 private:
  nn::Optimizer& second_;
};

}  // namespace mpc::testing
