// Learning-rate schedules that change at milestones. A milestone is a count of updates.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "frontend/graph/tensor.h"
#include "frontend/nn/learning_rate.h"

namespace mpc::nn {

struct MultiStepOptions {
  double learning_rate = 0.1;                 ///< rate before the first milestone
  double decay_rate = 0.1;                    ///< factor at each milestone, > 0
  std::vector<std::int64_t> milestones = {};  ///< positive and increasing, at least one
};

/// rate = learning_rate * decay_rate ^ (the number of milestones <= step). Each rate is rounded to f32 once. The source
/// is PyTorch's MultiStepLR, whose gamma is decay_rate, and which also takes a milestone twice. Errors: no milestones,
/// others that are not positive and increasing, a rate that f32 does not hold.
class MultiStep {
 public:
  explicit MultiStep(const MultiStepOptions& options) : options_(options) {}
  absl::Status Validate() const;
  Tensor Construct(const Tensor& step) const;

 private:
  std::vector<double> Rates() const;

  MultiStepOptions options_;
};

struct PiecewiseConstantOptions {
  std::vector<std::int64_t> milestones = {};  ///< where each rate ends: positive and increasing, at least one
  std::vector<double> learning_rates = {};    ///< one for each milestone, finite and >= 0
};

/// rate = learning_rates[i] while milestones[i - 1] <= step < milestones[i], with 0 in front of the first. The last
/// rate stays behind its milestone. The source is MindSpore's piecewise_constant_lr, whose first argument is
/// `milestone`. Errors: those of MultiStep, and another number of rates.
class PiecewiseConstant {
 public:
  explicit PiecewiseConstant(const PiecewiseConstantOptions& options) : options_(options) {}
  absl::Status Validate() const;
  Tensor Construct(const Tensor& step) const;

 private:
  PiecewiseConstantOptions options_;
};

struct SequentialScheduleOptions {
  std::vector<LearningRate> schedules = {};   ///< numbers or schedules, one more than milestones
  std::vector<std::int64_t> milestones = {};  ///< where each schedule but the first begins: positive and increasing
};

/// Schedules one after the other. Schedule i begins at milestones[i - 1], and its step counts from there. The source is
/// PyTorch's SequentialLR. Errors: those of MultiStep and of the schedules, and another number of schedules.
///
///     nn::SequentialSchedule({.schedules = {nn::WarmUp({.learning_rate = 0.1, .warmup_steps = 500}),
///                                           nn::CosineDecay({.learning_rate = 0.1, .total_steps = 9500})},
///                             .milestones = {500}})
class SequentialSchedule {
 public:
  explicit SequentialSchedule(const SequentialScheduleOptions& options) : options_(options) {}
  absl::Status Validate() const;
  Tensor Construct(const Tensor& step) const;

 private:
  SequentialScheduleOptions options_;
};

}  // namespace mpc::nn
