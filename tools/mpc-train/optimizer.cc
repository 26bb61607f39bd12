#include "tools/mpc-train/optimizer.h"

#include <utility>

namespace mpc::tools {

std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainOptions& options, std::vector<Parameter> parameters) {
  const double rate = options.learning_rate;
  const double decay = options.weight_decay;
  if (options.optimizer == "sgd") {
    return std::make_unique<nn::SGD>(
        std::move(parameters),
        nn::SGDOptions{.learning_rate = rate, .momentum = options.momentum, .weight_decay = decay});
  }
  if (options.optimizer == "adam") {
    return std::make_unique<nn::Adam>(std::move(parameters),
                                      nn::AdamOptions{.learning_rate = rate, .weight_decay = decay});
  }
  if (options.optimizer == "adamw") {
    return std::make_unique<nn::AdamWeightDecay>(
        std::move(parameters), nn::AdamWeightDecayOptions{.learning_rate = rate, .weight_decay = decay});
  }
  return std::make_unique<nn::Momentum>(
      std::move(parameters),
      nn::MomentumOptions{.learning_rate = rate, .momentum = options.momentum, .weight_decay = decay});
}

}  // namespace mpc::tools
