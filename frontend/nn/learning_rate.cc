#include "frontend/nn/learning_rate.h"

#include <cmath>
#include <numbers>

#include "absl/strings/str_cat.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/trace.h"

namespace mpc::nn {
namespace {

absl::Status CheckRate(const char* schedule, const char* field, double value) {
  if (value >= 0 && !std::isinf(value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(schedule, field, " must be a finite number >= 0, got ", value));
}

absl::Status CheckSteps(const char* schedule, const char* field, std::int64_t value) {
  if (value >= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(schedule, field, " must be at least 1, got ", value));
}

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
  const Tensor half_wave = (cos(progress * std::numbers::pi) + 1.0) * 0.5;
  const Tensor rate = half_wave * (options_.learning_rate - low) + low;
  if (options_.warmup_steps == 0) return rate;
  return AtMost((step + 1.0) / ops::FullLike(step, warmup), 1.0) * rate;
}

absl::Status PolynomialDecay::Validate() const {
  const char* name = "PolynomialDecay: ";
  if (absl::Status status = CheckRate(name, "learning_rate", options_.learning_rate); !status.ok()) return status;
  if (absl::Status status = CheckRate(name, "end_learning_rate", options_.end_learning_rate); !status.ok()) {
    return status;
  }
  if (!(options_.power > 0) || std::isinf(options_.power)) {
    return absl::InvalidArgumentError(absl::StrCat(name, "power must be a finite number > 0, got ", options_.power));
  }
  return CheckSteps(name, "decay_steps", options_.decay_steps);
}

Tensor PolynomialDecay::Construct(const Tensor& step) const {
  const auto steps = static_cast<double>(options_.decay_steps);
  const Tensor left = 1.0 - AtMost(step, steps) / ops::FullLike(step, steps);
  const Tensor share = options_.power == 1.0 ? left : pow(left, options_.power);
  return share * (options_.learning_rate - options_.end_learning_rate) + options_.end_learning_rate;
}

}  // namespace mpc::nn
