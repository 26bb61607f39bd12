#include "tools/mpc-train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::tools {
namespace {

// PyTorch's defaults, by which OneCycleLR divides the highest rate.
constexpr double kOneCycleFirst = 25, kOneCycleLast = 1e4;

/// The schedule behind a warm-up, over `steps` steps.
nn::LearningRate ScheduleOf(const TrainOptions& options, std::int64_t steps) {
  const double rate = options.learning_rate;
  const double last = FinalRate(options);
  if (options.schedule == "exponential") {
    // A rate of 0 stays 0.
    const double share = rate > 0 ? last / rate : 1;
    return nn::ExponentialDecay({.learning_rate = rate, .decay_rate = share, .decay_steps = steps});
  }
  if (options.schedule == "one-cycle") {
    return nn::OneCycle(
        {.max_lr = rate, .total_steps = steps, .div_factor = kOneCycleFirst, .final_div_factor = kOneCycleLast});
  }
  // Cycles of one, two and four parts.
  return nn::CosineAnnealingWarmRestarts(
      {.learning_rate = rate, .t_0 = std::max<std::int64_t>((steps + 6) / 7, 1), .t_mult = 2, .eta_min = last});
}

nn::LearningRate RateOf(const TrainOptions& options, std::int64_t total_steps) {
  if (!RateIsInStep(options)) return options.learning_rate;
  // Where nothing is trained there are no steps behind the warm-up.
  const std::int64_t steps = std::max(total_steps, options.warmup_steps + 1);
  if (options.schedule == "cosine") {
    return nn::CosineDecay({.learning_rate = options.learning_rate,
                            .min_learning_rate = FinalRate(options),
                            .total_steps = steps,
                            .warmup_steps = options.warmup_steps});
  }
  const nn::LearningRate schedule = ScheduleOf(options, steps - options.warmup_steps);
  if (options.warmup_steps == 0) return schedule;
  return nn::WarmUp({.learning_rate = schedule, .warmup_steps = options.warmup_steps});
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

std::unique_ptr<nn::Optimizer> MakeOptimizer(const TrainOptions& options, std::vector<Parameter> parameters,
                                             std::int64_t total_steps) {
  const nn::LearningRate rate = RateOf(options, total_steps);
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
  if (options.optimizer == "lamb") {
    return std::make_unique<nn::Lamb>(groups, nn::LambOptions{.learning_rate = rate, .weight_decay = decay});
  }
  nn::Momentum momentum(
      groups, nn::MomentumOptions{.learning_rate = rate, .momentum = options.momentum, .weight_decay = decay});
  if (options.optimizer == "lars") return std::make_unique<nn::LARS>(std::move(momentum));
  return std::make_unique<nn::Momentum>(std::move(momentum));
}

absl::Status CheckNumbersOfUpdates(const TrainOptions& options) {
  const std::tuple<const char*, double, bool> numbers[] = {{"momentum", options.momentum, false},
                                                           {"weight-decay", options.weight_decay, false},
                                                           {"clip-norm", options.clip_norm, true},
                                                           {"clip-value", options.clip_value, true}};
  for (const auto& [flag, value, is_limit] : numbers) {
    const auto held = static_cast<float>(value);
    const bool vanishes = is_limit && held == 0 && value != 0;
    if (std::isfinite(held) && !vanishes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, "=", value, vanishes ? ": f32 holds 0 in its place" : ": f32 does not hold it"));
  }
  return absl::OkStatus();
}

bool RateIsInStep(const TrainOptions& options) {
  if (options.schedule == "constant") return false;
  return options.schedule != "cosine" || options.data == kText || options.warmup_steps > 0;
}

double FinalRate(const TrainOptions& options) {
  if (!RateIsInStep(options)) return options.learning_rate;
  if (options.schedule == "one-cycle") return options.learning_rate / kOneCycleFirst / kOneCycleLast;
  if (options.data == kText) return options.learning_rate * kTextFinalRate;
  return options.schedule == "exponential" ? options.learning_rate / 100 : 0;
}

std::optional<double> ClipValue(const TrainOptions& options) {
  return options.clip_value > 0 ? std::optional<double>(options.clip_value) : std::nullopt;
}

std::optional<double> ClipNorm(const TrainOptions& options) {
  return options.clip_norm > 0 ? std::optional<double>(options.clip_norm) : std::nullopt;
}

}  // namespace mpc::tools
