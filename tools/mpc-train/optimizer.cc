#include "tools/mpc-train/optimizer.h"

#include <utility>

namespace mpc::tools {
namespace {

nn::LearningRate RateOf(const TrainOptions& options) {
  if (!RateIsInStep(options)) return options.learning_rate;
  return nn::CosineDecay({.learning_rate = options.learning_rate,
                          .min_learning_rate = options.learning_rate * kTextFinalRate,
                          .total_steps = TotalSteps(options),
                          .warmup_steps = options.warmup_steps});
}

nn::ParameterGroups GroupsOf(const TrainOptions& options, std::vector<Parameter> parameters) {
  if (options.data != kText) return parameters;
  nn::ParameterGroup matrices;
  nn::ParameterGroup vectors{.weight_decay = 0.0};
  for (Parameter& parameter : parameters) {
    (parameter.shape().size() > 1 ? matrices : vectors).params.push_back(std::move(parameter));
  }
  return std::vector<nn::ParameterGroup>{std::move(matrices), std::move(vectors)};
}

}  // namespace

std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainOptions& options, std::vector<Parameter> parameters) {
  const nn::LearningRate rate = RateOf(options);
  const double decay = options.weight_decay;
  const nn::ParameterGroups groups = GroupsOf(options, std::move(parameters));
  if (options.optimizer == "sgd") {
    return std::make_unique<nn::SGD>(
        groups, nn::SGDOptions{.learning_rate = rate, .momentum = options.momentum, .weight_decay = decay});
  }
  if (options.optimizer == "adam") {
    return std::make_unique<nn::Adam>(groups, nn::AdamOptions{.learning_rate = rate, .weight_decay = decay});
  }
  if (options.optimizer == "adamw") {
    return std::make_unique<nn::AdamWeightDecay>(
        groups, nn::AdamWeightDecayOptions{.learning_rate = rate, .weight_decay = decay});
  }
  if (options.optimizer == "torch-adamw") {
    nn::AdamWOptions adamw{.learning_rate = rate, .weight_decay = decay};
    if (options.data == kText) adamw.beta2 = kTextBeta2;
    return std::make_unique<nn::AdamW>(groups, adamw);
  }
  if (options.optimizer == "rmsprop") {
    return std::make_unique<nn::RMSProp>(groups, nn::RMSPropOptions{.learning_rate = rate, .weight_decay = decay});
  }
  if (options.optimizer == "lion") {
    return std::make_unique<nn::Lion>(groups, nn::LionOptions{.learning_rate = rate, .weight_decay = decay});
  }
  if (options.optimizer == "adagrad") {
    return std::make_unique<nn::Adagrad>(groups, nn::AdagradOptions{.learning_rate = rate, .weight_decay = decay});
  }
  return std::make_unique<nn::Momentum>(
      groups, nn::MomentumOptions{.learning_rate = rate, .momentum = options.momentum, .weight_decay = decay});
}

bool RateIsInStep(const TrainOptions& options) { return options.data == kText && options.schedule == "cosine"; }

std::optional<double> ClipNorm(const TrainOptions& options) {
  return options.clip_norm > 0 ? std::optional<double>(options.clip_norm) : std::nullopt;
}

}  // namespace mpc::tools
