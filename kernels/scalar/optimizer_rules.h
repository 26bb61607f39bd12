// The arithmetic of the optimizers, one element at a time, in f32. The kernels of every device apply it and give the
// same bits. A rule has
//
//   kStates     The number of f32 states after the parameter: operands 1 .. kStates. The gradient and the learning rate
//               follow them.
//   kHasStep    Whether the number of the step follows the learning rate. The scalars of GradientScaling come last.
//   Begin(scalars) -> a functor step(parameter&, state1&, state2&, gradient) for one element
//
// A rule that scales each tensor's update by the tensor's norms has instead of this Begin
//
//   Direction(scalars) -> a functor (parameter, state1&, state2&, gradient) -> direction
//   Begin(scalars, |parameter|, |direction|), with norms in f64.
//
// Adam is from Kingma and Ba 2015, "Adam: a method for stochastic optimization". AdamW is from Loshchilov and Hutter
// 2019, "Decoupled weight decay regularization". LAMB is from You et al. 2020, "Large batch optimization for deep
// learning: training BERT in 76 minutes". docs/dialect.md has the formulas and says where they place epsilon.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/kernel_spec.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/clip.h"

namespace mpc::scalar {

/// The scalars that a step reads beside its tensors.
struct StepScalars {
  float learning_rate;
  std::int32_t step;  ///< 0 where the rule does not count steps
};

/// The factors of every gradient before its rule sees it. Each product is rounded, as mpc.unscale and mpc.clip_by_norm
/// round theirs; a factor of 1 changes nothing.
struct GradientFactors {
  float inverse_scale = 1;
  float clip = 1;
  MPC_HOST_DEVICE float Apply(float gradient) const { return gradient * inverse_scale * clip; }
};

/// The scalars of an optimizer behind the `rule_operands` operands of its rule. They are the scale where `unscale` is
/// set, the norm where `max_norm` is not 0, and the optional predicate.
struct GradientScaling {
  bool unscales;
  float max_norm;
  std::size_t scale, norm, predicate;  ///< operand positions
  bool norm_is_f64;                    ///< else f32, as before norms were f64

  GradientScaling(const KernelSpec& spec, std::size_t rule_operands)
      : unscales(spec.attributes.GetBool("unscale")),
        max_norm(FloatAttribute(spec, "max_norm")),
        scale(rule_operands),
        norm(scale + (unscales ? 1 : 0)),
        predicate(norm + (clips() ? 1 : 0)),
        norm_is_f64(clips() && norm < spec.inputs.size() && spec.inputs[norm].dtype == DType::kF64) {}
  bool clips() const { return max_norm > 0; }
};

/// The factors for these scalars. `scale` is null where there is none.
MPC_HOST_DEVICE inline GradientFactors FactorsOf(const float* scale, const NormOperand& norm, float max_norm) {
  return {scale == nullptr ? 1.0f : 1.0f / *scale, norm.Factor(max_norm)};
}

/// base^exponent by squaring: the same bits on every device, which no library's pow promises.
MPC_HOST_DEVICE inline double Power(double base, std::int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power *= base;
    base *= base;
  }
  return power;
}

/// `value`, or `limit` where that is smaller. NaN passes.
MPC_HOST_DEVICE inline float AtMost(float limit, float value) { return limit < value ? limit : value; }

/// 1 - value, rounded once.
inline float Complement(float value) { return static_cast<float>(1.0 - static_cast<double>(value)); }

/// 1 - beta^(step + 1). In f32 the digits would be lost to cancellation.
MPC_HOST_DEVICE inline double Correction(float beta, std::int32_t step) {
  return 1 - Power(static_cast<double>(beta), std::int64_t{step} + 1);
}

/// The gradient with the static loss scale divided out and the coupled weight decay added.
struct Decay {
  float loss_scale, weight_decay;
  explicit Decay(const KernelSpec& spec)
      : loss_scale(spec.attributes.Get(attribute::kLossScale)), weight_decay(FloatAttribute(spec, "weight_decay")) {}
  MPC_HOST_DEVICE float Apply(float gradient, float parameter) const {
    return gradient / loss_scale + weight_decay * parameter;
  }
};

struct Sgd {
  static constexpr int kStates = 1;
  static constexpr bool kHasStep = true;
  Decay decay;
  float momentum, gradient_weight;
  bool nesterov;
  explicit Sgd(const KernelSpec& spec)
      : decay(spec),
        momentum(FloatAttribute(spec, "momentum")),
        gradient_weight(Complement(FloatAttribute(spec, "dampening"))),
        nesterov(spec.attributes.GetBool("nesterov")) {}

  MPC_HOST_DEVICE auto Begin(const StepScalars& scalars) const {
    const bool first = scalars.step == 0;
    return [*this, first, rate = scalars.learning_rate](float& p, float& v, float&, float gradient) {
      const float g = decay.Apply(gradient, p);
      const float moved = first ? g : momentum * v + gradient_weight * g;
      const float velocity = momentum != 0.0f ? moved : v;
      const float with_momentum = nesterov ? g + momentum * velocity : velocity;
      p -= rate * (momentum != 0.0f ? with_momentum : g);
      v = velocity;
    };
  }
};

struct Momentum {
  static constexpr int kStates = 1;
  static constexpr bool kHasStep = false;
  Decay decay;
  float momentum;
  bool nesterov;
  explicit Momentum(const KernelSpec& spec)
      : decay(spec),
        momentum(spec.attributes.Get(attribute::kMomentum)),
        nesterov(spec.attributes.GetBool("nesterov")) {}

  MPC_HOST_DEVICE auto Begin(const StepScalars& scalars) const {
    return [*this, rate = scalars.learning_rate](float& p, float& v, float&, float gradient) {
      const float g = decay.Apply(gradient, p);
      v = momentum * v + g;
      p -= rate * (nesterov ? g + momentum * v : v);
    };
  }
};

struct Moments {
  float beta1, beta2, epsilon, weight1, weight2;
  Moments(const KernelSpec& spec, const KnownAttribute<float>& known_epsilon)
      : beta1(spec.attributes.Get(attribute::kBeta1)),
        beta2(spec.attributes.Get(attribute::kBeta2)),
        epsilon(spec.attributes.Get(known_epsilon)),
        weight1(Complement(beta1)),
        weight2(Complement(beta2)) {}

  MPC_HOST_DEVICE void Move(float& m, float& v, float g) const {
    m = beta1 * m + weight1 * g;
    v = beta2 * v + weight2 * g * g;
  }
};

struct Adam {
  static constexpr int kStates = 2;
  static constexpr bool kHasStep = true;
  Decay decay;
  Moments moments;
  explicit Adam(const KernelSpec& spec) : decay(spec), moments(spec, attribute::kAdamEpsilon) {}

  MPC_HOST_DEVICE auto Begin(const StepScalars& scalars) const {
    const double correction =
        std::sqrt(Correction(moments.beta2, scalars.step)) / Correction(moments.beta1, scalars.step);
    const float rate = static_cast<float>(static_cast<double>(scalars.learning_rate) * correction);
    return [*this, rate](float& p, float& m, float& v, float gradient) {
      moments.Move(m, v, decay.Apply(gradient, p));
      p -= rate * (m / (std::sqrt(v) + moments.epsilon));
    };
  }
};

struct AdamWeightDecay {
  static constexpr int kStates = 2;
  static constexpr bool kHasStep = false;
  Moments moments;
  float weight_decay;
  explicit AdamWeightDecay(const KernelSpec& spec)
      : moments(spec, attribute::kLambEpsilon), weight_decay(FloatAttribute(spec, "weight_decay")) {}

  MPC_HOST_DEVICE auto Begin(const StepScalars& scalars) const {
    return [*this, rate = scalars.learning_rate](float& p, float& m, float& v, float gradient) {
      moments.Move(m, v, gradient);
      p -= rate * (m / (std::sqrt(v) + moments.epsilon) + weight_decay * p);
    };
  }
};

struct AdamW {
  static constexpr int kStates = 2;
  static constexpr bool kHasStep = true;
  Moments moments;
  float loss_scale, weight_decay;
  explicit AdamW(const KernelSpec& spec)
      : moments(spec, attribute::kAdamEpsilon),
        loss_scale(spec.attributes.Get(attribute::kLossScale)),
        weight_decay(spec.attributes.Get(attribute::kAdamWDecay)) {}

  MPC_HOST_DEVICE auto Begin(const StepScalars& scalars) const {
    const float rate = scalars.learning_rate;
    const float corrected_rate =
        static_cast<float>(static_cast<double>(rate) / Correction(moments.beta1, scalars.step));
    const float root = static_cast<float>(std::sqrt(Correction(moments.beta2, scalars.step)));
    return [*this, decay = rate * weight_decay, corrected_rate, root](float& p, float& m, float& v, float gradient) {
      p -= decay * p;
      moments.Move(m, v, gradient / loss_scale);
      p -= corrected_rate * (m / (std::sqrt(v) / root + moments.epsilon));
    };
  }
};

struct Lamb {
  static constexpr int kStates = 2;
  static constexpr bool kHasStep = true;
  static constexpr float kLargestRatio = 10.0f;
  Moments moments;
  float loss_scale, weight_decay;
  explicit Lamb(const KernelSpec& spec)
      : moments(spec, attribute::kLambEpsilon),
        loss_scale(spec.attributes.Get(attribute::kLossScale)),
        weight_decay(FloatAttribute(spec, "weight_decay")) {}

  MPC_HOST_DEVICE auto Direction(const StepScalars& scalars) const {
    const float correction1 = static_cast<float>(Correction(moments.beta1, scalars.step));
    const float correction2 = static_cast<float>(Correction(moments.beta2, scalars.step));
    return [*this, correction1, correction2](float p, float& m, float& v, float gradient) {
      moments.Move(m, v, gradient / loss_scale);
      return m / correction1 / (std::sqrt(v / correction2) + moments.epsilon) + weight_decay * p;
    };
  }

  MPC_HOST_DEVICE auto Begin(const StepScalars& scalars, double parameter_norm, double direction_norm) const {
    const bool comparable = parameter_norm != 0.0 && direction_norm != 0.0;
    const float ratio = comparable ? AtMost(kLargestRatio, static_cast<float>(parameter_norm / direction_norm)) : 1.0f;
    return [direction = Direction(scalars), rate = scalars.learning_rate * ratio](
               float& p, float& m, float& v, float gradient) { p -= rate * direction(p, m, v, gradient); };
  }
};

/// A level of the sum over micro-steps (mpc.accumulate_gradient). The first micro-step does not read what an earlier
/// round left behind, which may be NaN.
struct AccumulateOp {
  std::int32_t last;   ///< the number of the last micro-step
  std::int32_t level;  ///< below 31
  float divisor;       ///< what the level's operand is divided by

  explicit AccumulateOp(const KernelSpec& spec)
      : last(static_cast<std::int32_t>(spec.attributes.Get(attribute::kCount) - 1)),
        level(static_cast<std::int32_t>(spec.attributes.Get(attribute::kLevel))),
        divisor(level > 0 ? 1.0f : static_cast<float>(spec.attributes.Get(attribute::kCount))) {}

  enum class Action : std::uint8_t { kKeep, kReplace, kAdd };

  MPC_HOST_DEVICE Action ActionIn(std::int32_t micro_step) const {
    const std::int32_t below = (std::int32_t{1} << level) - 1;
    const bool reached = (micro_step & below) == below || micro_step == 0 || micro_step == last;
    if (!reached) return Action::kKeep;
    return ((micro_step >> level) & 1) != 0 ? Action::kAdd : Action::kReplace;
  }
  /// The action is not kKeep.
  MPC_HOST_DEVICE float Apply(Action action, float sum, float gradient) const {
    const float share = gradient / divisor;
    return action == Action::kAdd ? sum + share : share;
  }
};

}  // namespace mpc::scalar
