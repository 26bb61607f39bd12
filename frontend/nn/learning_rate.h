// The learning rate of an optimizer: a number, or a schedule in the graph.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "frontend/graph/tensor.h"

namespace mpc::nn {

namespace internal {

/// A class with `Tensor Construct(Tensor step)`, const or not.
template <typename T>
concept ScheduleClass = requires(T& schedule, const Tensor& step) {
  { schedule.Construct(step) } -> std::convertible_to<Tensor>;
};

/// A function of the step.
template <typename T>
concept ScheduleFunction = requires(T& schedule, const Tensor& step) {
  { schedule(step) } -> std::convertible_to<Tensor>;
};

}  // namespace internal

/// What an optimizer's `learning_rate` option takes: a number, which is state and changes with
/// Optimizer::SetLearningRate; or a schedule, which computes the rate in the graph.
///
/// A schedule is any function `Tensor(Tensor step)` or class with `Tensor Construct(Tensor step)`. `step` is the number
/// of updates done so far, f32, rank 0: 0 in the first step; a skipped step does not count. The result is a rank-0 f32
/// tensor.
///
///     nn::Momentum opt(net.TrainableParams(), {.learning_rate = nn::CosineDecay({.learning_rate = 0.1,
///                                                                                .total_steps = 10000})});
///     nn::SGD sgd(net.TrainableParams(), {.learning_rate = [](Tensor step) { return exp(step * -0.01) * 0.1; }});
class LearningRate {
 public:
  /// A constant rate, finite and >= 0.
  LearningRate(double value);  // NOLINT: a number stands for a rate
  template <typename Schedule>
  requires(!std::is_arithmetic_v<std::decay_t<Schedule>> && !std::same_as<std::decay_t<Schedule>, LearningRate> &&
           (internal::ScheduleClass<std::decay_t<Schedule>> || internal::ScheduleFunction<std::decay_t<Schedule>>))
      LearningRate(Schedule&& schedule) {  // NOLINT: so does a schedule
    using Object = std::decay_t<Schedule>;
    if constexpr (requires(const Object& object) { object.Validate(); }) status_ = schedule.Validate();
    auto shared = std::make_shared<Object>(std::forward<Schedule>(schedule));
    if constexpr (internal::ScheduleClass<Object>) {
      schedule_ = [shared](const Tensor& step) -> Tensor { return shared->Construct(step); };
    } else {
      schedule_ = [shared](const Tensor& step) -> Tensor { return (*shared)(step); };
    }
  }

  /// OK, or the error of the first argument out of range.
  const absl::Status& status() const { return status_; }
  bool is_schedule() const { return schedule_ != nullptr; }
  /// The constant rate; 0 of a schedule.
  double value() const { return value_; }
  /// While tracing: the rate after `step` updates (i32 or f32, rank 0).
  Tensor ValueAt(const Tensor& step) const;

 private:
  double value_ = 0.0;
  std::function<Tensor(const Tensor&)> schedule_;
  absl::Status status_;
};

struct StepDecayOptions {
  double learning_rate = 0.1;     ///< rate of the first `step_size` updates
  double decay_rate = 0.1;        ///< in (0, 1]
  std::int64_t step_size = 1000;  ///< updates between two decays
};

/// rate = learning_rate * decay_rate ^ floor(step / step_size).
class StepDecay {
 public:
  explicit StepDecay(const StepDecayOptions& options) : options_(options) {}
  absl::Status Validate() const;
  Tensor Construct(const Tensor& step) const;

 private:
  StepDecayOptions options_;
};

struct CosineDecayOptions {
  double learning_rate = 0.1;       ///< the highest rate, reached after the warm-up
  double min_learning_rate = 0.0;   ///< rate from `total_steps` on
  std::int64_t total_steps = 1000;  ///< warm-up included
  std::int64_t warmup_steps = 0;    ///< updates over which the rate rises linearly
};

/// Warm-up, step < w: rate = learning_rate * (step + 1) / w. Then, with t = min(1, (step - w) / (total_steps - w)):
/// rate = min + (learning_rate - min) * (1 + cos(pi t)) / 2 (Loshchilov and Hutter 2017, without restarts).
class CosineDecay {
 public:
  explicit CosineDecay(const CosineDecayOptions& options) : options_(options) {}
  absl::Status Validate() const;
  Tensor Construct(const Tensor& step) const;

 private:
  CosineDecayOptions options_;
};

struct PolynomialDecayOptions {
  double learning_rate = 0.1;
  double end_learning_rate = 0.0;  ///< rate from `decay_steps` on
  std::int64_t decay_steps = 1000;
  double power = 1.0;  ///< 1: a straight line
};

/// rate = end + (learning_rate - end) * (1 - min(step, decay_steps) / decay_steps) ^ power.
class PolynomialDecay {
 public:
  explicit PolynomialDecay(const PolynomialDecayOptions& options) : options_(options) {}
  absl::Status Validate() const;
  Tensor Construct(const Tensor& step) const;

 private:
  PolynomialDecayOptions options_;
};

struct ExponentialDecayOptions {
  double learning_rate = 0.1;
  double decay_rate = 0.9;          ///< factor of `decay_steps` updates, > 0
  std::int64_t decay_steps = 1000;  ///< updates over which the rate takes one factor
  bool is_stair = false;            ///< true: the rate changes after each `decay_steps` updates only
};

/// rate = learning_rate * decay_rate ^ (step / decay_steps), or with `is_stair` ^ floor(step / decay_steps). The names
/// are those of MindSpore's nn.ExponentialDecayLR.
class ExponentialDecay {
 public:
  explicit ExponentialDecay(const ExponentialDecayOptions& options) : options_(options) {}
  absl::Status Validate() const;
  Tensor Construct(const Tensor& step) const;

 private:
  ExponentialDecayOptions options_;
};

struct CosineAnnealingWarmRestartsOptions {
  double learning_rate = 0.1;  ///< rate at the beginning of each cycle
  std::int64_t t_0 = 1000;     ///< updates of the first cycle
  std::int64_t t_mult = 1;     ///< how many times as long each cycle is as the one before it
  double eta_min = 0.0;        ///< what the rate falls to in a cycle
};

/// In a cycle of n updates that began at update s, with t = (step - s) / n:
/// rate = eta_min + (learning_rate - eta_min) * (1 + cos(pi t)) / 2. Then the next cycle begins (Loshchilov and Hutter
/// 2017, "SGDR: stochastic gradient descent with warm restarts"). The names are those of PyTorch's scheduler and of
/// MindSpore's. Where `t_mult` is not 1, the last restart is before update 2^24.
class CosineAnnealingWarmRestarts {
 public:
  explicit CosineAnnealingWarmRestarts(const CosineAnnealingWarmRestartsOptions& options) : options_(options) {}
  absl::Status Validate() const;
  Tensor Construct(const Tensor& step) const;

 private:
  CosineAnnealingWarmRestartsOptions options_;
};

struct OneCycleOptions {
  double max_lr = 0.1;
  std::int64_t total_steps = 1000;
  double pct_start = 0.3;               ///< share of the updates that the rise takes, in (0, 1)
  std::string anneal_strategy = "cos";  ///< or "linear"
  double div_factor = 25.0;             ///< max_lr / the first rate
  double final_div_factor = 1e4;        ///< the first rate / the last one
};

/// The rate rises from max_lr / div_factor at update 0 to max_lr at r = pct_start * total_steps - 1. Then it falls to
/// max_lr / div_factor / final_div_factor at total_steps - 1, where it stays. From a to b, with t from 0 to 1, it is
/// b + (a - b) * (1 + cos(pi t)) / 2. For "linear" it is a + (b - a) * t. The source is Smith and Topin 2018,
/// "Super-convergence: very fast training of neural networks using large learning rates". MindSpore has no such
/// schedule. The names, defaults and r are those of PyTorch's OneCycleLR, which also moves the momentum and has a third
/// phase; this has not.
class OneCycle {
 public:
  explicit OneCycle(const OneCycleOptions& options) : options_(options) {}
  absl::Status Validate() const;
  Tensor Construct(const Tensor& step) const;

 private:
  OneCycleOptions options_;
};

struct WarmUpOptions {
  LearningRate learning_rate = 0.1;  ///< a number or any schedule, for what comes after the warm-up
  std::int64_t warmup_steps = 1000;  ///< updates over which the rate rises linearly
};

/// A warm-up in front of any schedule. For step < w: rate = (the first rate of the schedule) * (step + 1) / w. Then the
/// schedule begins: its step is step - w. MindSpore's nn.WarmUpLR ends in a constant, and its first rate is 0.
///
///     nn::WarmUp({.learning_rate = nn::ExponentialDecay({.learning_rate = 0.1}), .warmup_steps = 500})
class WarmUp {
 public:
  explicit WarmUp(const WarmUpOptions& options) : options_(options) {}
  absl::Status Validate() const;
  Tensor Construct(const Tensor& step) const;

 private:
  WarmUpOptions options_;
};

}  // namespace mpc::nn
