#include "frontend/nn/learning_rate.h"

#include <cmath>
#include <initializer_list>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/trace.h"
#include "frontend/nn/finite_numbers.h"

namespace mpc::nn {
namespace {

absl::Status CheckRate(const char* schedule, const char* field, double value) {
  return internal::CheckNotNegative(absl::StrCat(schedule, field), value);
}

absl::Status CheckSteps(const char* schedule, const char* field, std::int64_t value) {
  if (value >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(schedule, field, " must be at least 1, got ", value));
}

absl::Status CheckPositive(const char* schedule, const char* field, double value) {
  if (value > 0 && !std::isinf(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(schedule, field, " must be a finite number > 0, got ", value));
}

/// The first error of several checks.
absl::Status FirstError(std::initializer_list<absl::Status> statuses) {
  for (const absl::Status& status : statuses) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

/// Correctly rounded, as a product with the reciprocal is not: n / n is exactly 1.
Tensor Quotient(const Tensor& x, double divisor) { return x / ops::FullLike(x, divisor); }

/// (1 + cos(pi progress)) / 2: falls from 1 to 0.
Tensor HalfWave(const Tensor& progress) { return (cos(progress * std::numbers::pi) + 1.0) * 0.5; }

Tensor AtMost(const Tensor& x, double limit) { return minimum(x, ops::FullLike(x, limit)); }

}  // namespace

LearningRate::LearningRate(double value) : value_(value), status_(CheckRate("", "learning_rate", value)) {}

Tensor LearningRate::ValueAt(const Tensor& step) const {
  auto* trace = mpc::internal::Trace::Current();
  const Tensor count = step.dtype() == DType::kF32 ? step : trace->Emit("cast", {step}, {}, DType::kF32)[0];
  if (!is_schedule()) return ops::FullLike(count, value_);
  const Tensor rate = schedule_(count);
  if (trace->failed()) return count;
  if (!rate.defined() || rate.dtype() != DType::kF32 || rate.rank() != 0) {
    trace->Fail(absl::StrCat("a learning-rate schedule must return a rank-0 f32 tensor, got ",
                             rate.defined() ? rate.spec().ToString() : "an undefined tensor"));
    return count;
  }
  return rate;
}

absl::Status StepDecay::Validate() const {
  if (absl::Status status = CheckRate("StepDecay: ", "learning_rate", options_.learning_rate); !status.ok()) {
    return status;
  }
  if (!(options_.decay_rate > 0 && options_.decay_rate <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("StepDecay: decay_rate must be in (0, 1], got ", options_.decay_rate));
  }
  return CheckSteps("StepDecay: ", "step_size", options_.step_size);
}

Tensor StepDecay::Construct(const Tensor& step) const {
  // Division, not multiplication by a reciprocal: step_size / step_size must be exactly 1.
  const Tensor decays = floor(step / ops::FullLike(step, static_cast<double>(options_.step_size)));
  return exp(decays * std::log(options_.decay_rate)) * options_.learning_rate;
}

absl::Status CosineDecay::Validate() const {
  const char* name = "CosineDecay: ";
  if (absl::Status status = CheckRate(name, "learning_rate", options_.learning_rate); !status.ok()) return status;
  if (absl::Status status = CheckRate(name, "min_learning_rate", options_.min_learning_rate); !status.ok()) {
    return status;
  }
  if (options_.min_learning_rate > options_.learning_rate) {
    return absl::InvalidArgumentError(absl::StrCat(name, "min_learning_rate ", options_.min_learning_rate,
                                                   " must not exceed learning_rate ", options_.learning_rate));
  }
  if (options_.warmup_steps < 0 || options_.warmup_steps >= options_.total_steps) {
    return absl::InvalidArgumentError(absl::StrCat(name, "warmup_steps must be in [0, total_steps), got ",
                                                   options_.warmup_steps, " of ", options_.total_steps));
  }
  return absl::OkStatus();
}

Tensor CosineDecay::Construct(const Tensor& step) const {
  const auto warmup = static_cast<double>(options_.warmup_steps);
  const double decay_steps = static_cast<double>(options_.total_steps) - warmup;
  const double low = options_.min_learning_rate;
  // Progress is 0, and the cosine factor 1, all through the warm-up.
  Tensor progress = maximum(step - warmup, ops::FullLike(step, 0.0)) / ops::FullLike(step, decay_steps);
  progress = AtMost(progress, 1.0);
  const Tensor rate = HalfWave(progress) * (options_.learning_rate - low) + low;
  if (options_.warmup_steps == 0) return rate;
  return AtMost((step + 1.0) / ops::FullLike(step, warmup), 1.0) * rate;
}

absl::Status PolynomialDecay::Validate() const {
  const char* name = "PolynomialDecay: ";
  if (absl::Status status = CheckRate(name, "learning_rate", options_.learning_rate); !status.ok()) return status;
  if (absl::Status status = CheckRate(name, "end_learning_rate", options_.end_learning_rate); !status.ok()) {
    return status;
  }
  return FirstError({internal::CheckPositive(absl::StrCat(name, "power"), options_.power),
                     CheckSteps(name, "decay_steps", options_.decay_steps)});
}

Tensor PolynomialDecay::Construct(const Tensor& step) const {
  const auto steps = static_cast<double>(options_.decay_steps);
  const Tensor left = 1.0 - AtMost(step, steps) / ops::FullLike(step, steps);
  const Tensor share = options_.power == 1.0 ? left : pow(left, options_.power);
  return share * (options_.learning_rate - options_.end_learning_rate) + options_.end_learning_rate;
}

absl::Status ExponentialDecay::Validate() const {
  const char* name = "ExponentialDecay: ";
  return FirstError({CheckRate(name, "learning_rate", options_.learning_rate),
                     CheckPositive(name, "decay_rate", options_.decay_rate),
                     CheckSteps(name, "decay_steps", options_.decay_steps)});
}

Tensor ExponentialDecay::Construct(const Tensor& step) const {
  Tensor decays = Quotient(step, static_cast<double>(options_.decay_steps));
  if (options_.is_stair) decays = floor(decays);
  return exp(decays * std::log(options_.decay_rate)) * options_.learning_rate;
}

absl::Status CosineAnnealingWarmRestarts::Validate() const {
  const char* name = "CosineAnnealingWarmRestarts: ";
  if (options_.eta_min > options_.learning_rate) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "eta_min ", options_.eta_min, " must not exceed learning_rate ", options_.learning_rate));
  }
  return FirstError({CheckRate(name, "learning_rate", options_.learning_rate),
                     CheckRate(name, "eta_min", options_.eta_min), CheckSteps(name, "t_0", options_.t_0),
                     CheckSteps(name, "t_mult", options_.t_mult)});
}

Tensor CosineAnnealingWarmRestarts::Construct(const Tensor& step) const {
  constexpr double kLastExactStep = 0x1p24;  // f32 counts no further
  const auto first = static_cast<double>(options_.t_0);
  const auto factor = static_cast<double>(options_.t_mult);
  Tensor into_cycle = step;
  Tensor length = ops::FullLike(step, first);
  if (options_.t_mult == 1) {
    into_cycle = step - floor(Quotient(step, first)) * first;
  } else {
    // A logarithm would give the number of the cycle, but rounds at the restarts. Integers are exact.
    double size = first;
    double restart = first;
    while (restart < kLastExactStep) {
      const Tensor passed = clamp(step - (restart - 1), 0, 1);
      into_cycle = into_cycle - passed * size;
      length = length + passed * (size * factor - size);
      size *= factor;
      restart += size;
    }
  }
  return HalfWave(into_cycle / length) * (options_.learning_rate - options_.eta_min) + options_.eta_min;
}

absl::Status OneCycle::Validate() const {
  const char* name = "OneCycle: ";
  if (absl::Status status =
          FirstError({CheckRate(name, "max_lr", options_.max_lr), CheckSteps(name, "total_steps", options_.total_steps),
                      CheckPositive(name, "div_factor", options_.div_factor),
                      CheckPositive(name, "final_div_factor", options_.final_div_factor),
                      CheckRate(name, "max_lr / div_factor", options_.max_lr / options_.div_factor),
                      CheckRate(name, "max_lr / div_factor / final_div_factor",
                                options_.max_lr / options_.div_factor / options_.final_div_factor)});
      !status.ok()) {
    return status;
  }
  if (!(options_.pct_start > 0 && options_.pct_start < 1)) {
    return absl::InvalidArgumentError(absl::StrCat(name, "pct_start must be in (0, 1), got ", options_.pct_start));
  }
  if (const double rise = options_.pct_start * static_cast<double>(options_.total_steps); rise <= 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "the rise takes pct_start * total_steps updates, which must be more than 1, got ", rise));
  }
  if (options_.anneal_strategy != "cos" && options_.anneal_strategy != "linear") {
    return absl::InvalidArgumentError(
        absl::StrCat(name, "anneal_strategy must be cos or linear, got '", options_.anneal_strategy, "'"));
  }
  return absl::OkStatus();
}

Tensor OneCycle::Construct(const Tensor& step) const {
  const auto total = static_cast<double>(options_.total_steps);
  const double peak = options_.pct_start * total - 1;
  const double first = options_.max_lr / options_.div_factor;
  const auto between = [&](double from, double to, const Tensor& progress) {
    const Tensor share = clamp(progress, 0, 1);
    const Tensor left = options_.anneal_strategy == "cos" ? HalfWave(share) : 1.0 - share;
    return left * (from - to) + to;
  };
  const Tensor rise = between(first, options_.max_lr, Quotient(step, peak));
  const Tensor fall =
      between(options_.max_lr, first / options_.final_div_factor, Quotient(step - peak, total - 1 - peak));
  return where(greater(step, ops::FullLike(step, peak)), fall, rise);
}

absl::Status WarmUp::Validate() const {
  return FirstError({options_.learning_rate.status(), CheckSteps("WarmUp: ", "warmup_steps", options_.warmup_steps)});
}

Tensor WarmUp::Construct(const Tensor& step) const {
  const auto warmup = static_cast<double>(options_.warmup_steps);
  const Tensor rate = options_.learning_rate.ValueAt(maximum(step, ops::FullLike(step, warmup)) - warmup);
  return AtMost(Quotient(step + 1.0, warmup), 1.0) * rate;
}

}  // namespace mpc::nn
