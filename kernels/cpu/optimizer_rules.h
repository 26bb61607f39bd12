// The arithmetic of the optimizers, one element at a time, in f32. A rule has
//   kStates     f32 states after the parameter (operands 1 .. kStates; the gradient follows them)
//   kPredicate  position of the optional predicate
//   Begin(operands) -> a functor step(parameter&, state1&, state2&, gradient) for one element
// and, where it scales each tensor's update by the tensor's norms,
//   Direction(operands) -> a functor (parameter, state1&, state2&, gradient) -> direction
//   Begin(operands, |parameter|, |direction|) instead.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/state_update.h"

namespace mpc::cpu {

/// 1 - value, rounded once.
inline float Complement(float value) { return static_cast<float>(1.0 - static_cast<double>(value)); }

/// 1 - beta^t. In f32 the digits would be lost to cancellation.
inline double Correction(float beta, double t) { return 1 - std::pow(static_cast<double>(beta), t); }

/// The gradient with the static loss scale divided out and the coupled weight decay added.
struct Decay {
  float loss_scale, weight_decay;
  explicit Decay(const KernelSpec& spec)
      : loss_scale(FloatAttribute(spec, "loss_scale", 1.0f)), weight_decay(FloatAttribute(spec, "weight_decay", 0)) {}
  float Apply(float gradient, float parameter) const { return gradient / loss_scale + weight_decay * parameter; }
};

struct Sgd {
  static constexpr std::size_t kStates = 1, kPredicate = 5;
  Decay decay;
  float momentum, gradient_weight;
  bool nesterov;
  explicit Sgd(const KernelSpec& spec)
      : decay(spec),
        momentum(FloatAttribute(spec, "momentum", 0)),
        gradient_weight(Complement(FloatAttribute(spec, "dampening", 0))),
        nesterov(spec.attributes.GetBool("nesterov")) {}

  auto Begin(const KernelOperands& operands) const {
    const bool first = ScalarOperand<std::int32_t>(operands, 4) == 0;
    return [*this, first, rate = ScalarOperand<float>(operands, 3)](float& p, float& v, float&, float gradient) {
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
  static constexpr std::size_t kStates = 1, kPredicate = 4;
  Decay decay;
  float momentum;
  bool nesterov;
  explicit Momentum(const KernelSpec& spec)
      : decay(spec), momentum(FloatAttribute(spec, "momentum", 0.9f)), nesterov(spec.attributes.GetBool("nesterov")) {}

  auto Begin(const KernelOperands& operands) const {
    return [*this, rate = ScalarOperand<float>(operands, 3)](float& p, float& v, float&, float gradient) {
      const float g = decay.Apply(gradient, p);
      v = momentum * v + g;
      p -= rate * (nesterov ? g + momentum * v : v);
    };
  }
};

struct Moments {
  float beta1, beta2, epsilon, weight1, weight2;
  Moments(const KernelSpec& spec, float default_epsilon)
      : beta1(FloatAttribute(spec, "beta1", 0.9f)),
        beta2(FloatAttribute(spec, "beta2", 0.999f)),
        epsilon(FloatAttribute(spec, "epsilon", default_epsilon)),
        weight1(Complement(beta1)),
        weight2(Complement(beta2)) {}

  void Move(float& m, float& v, float g) const {
    m = beta1 * m + weight1 * g;
    v = beta2 * v + weight2 * g * g;
  }
};

struct Adam {
  static constexpr std::size_t kStates = 2, kPredicate = 6;
  Decay decay;
  Moments moments;
  explicit Adam(const KernelSpec& spec) : decay(spec), moments(spec, 1e-8f) {}

  auto Begin(const KernelOperands& operands) const {
    const double t = static_cast<double>(ScalarOperand<std::int32_t>(operands, 5)) + 1;
    const double correction = std::sqrt(Correction(moments.beta2, t)) / Correction(moments.beta1, t);
    const float rate = static_cast<float>(static_cast<double>(ScalarOperand<float>(operands, 4)) * correction);
    return [*this, rate](float& p, float& m, float& v, float gradient) {
      moments.Move(m, v, decay.Apply(gradient, p));
      p -= rate * (m / (std::sqrt(v) + moments.epsilon));
    };
  }
};

struct AdamWeightDecay {
  static constexpr std::size_t kStates = 2, kPredicate = 5;
  Moments moments;
  float weight_decay;
  explicit AdamWeightDecay(const KernelSpec& spec)
      : moments(spec, 1e-6f), weight_decay(FloatAttribute(spec, "weight_decay", 0)) {}

  auto Begin(const KernelOperands& operands) const {
    return [*this, rate = ScalarOperand<float>(operands, 4)](float& p, float& m, float& v, float gradient) {
      moments.Move(m, v, gradient);
      p -= rate * (m / (std::sqrt(v) + moments.epsilon) + weight_decay * p);
    };
  }
};

struct AdamW {
  static constexpr std::size_t kStates = 2, kPredicate = 6;
  Moments moments;
  float loss_scale, weight_decay;
  explicit AdamW(const KernelSpec& spec)
      : moments(spec, 1e-8f),
        loss_scale(FloatAttribute(spec, "loss_scale", 1.0f)),
        weight_decay(FloatAttribute(spec, "weight_decay", 0.01f)) {}

  auto Begin(const KernelOperands& operands) const {
    const double t = static_cast<double>(ScalarOperand<std::int32_t>(operands, 5)) + 1;
    const float rate = ScalarOperand<float>(operands, 4);
    const float corrected_rate = static_cast<float>(static_cast<double>(rate) / Correction(moments.beta1, t));
    const float root = static_cast<float>(std::sqrt(Correction(moments.beta2, t)));
    return [*this, decay = rate * weight_decay, corrected_rate, root](float& p, float& m, float& v, float gradient) {
      p -= decay * p;
      moments.Move(m, v, gradient / loss_scale);
      p -= corrected_rate * (m / (std::sqrt(v) / root + moments.epsilon));
    };
  }
};

struct Lamb {
  static constexpr std::size_t kStates = 2, kPredicate = 6;
  static constexpr float kLargestRatio = 10.0f;
  Moments moments;
  float loss_scale, weight_decay;
  explicit Lamb(const KernelSpec& spec)
      : moments(spec, 1e-6f),
        loss_scale(FloatAttribute(spec, "loss_scale", 1.0f)),
        weight_decay(FloatAttribute(spec, "weight_decay", 0)) {}

  auto Direction(const KernelOperands& operands) const {
    const double t = static_cast<double>(ScalarOperand<std::int32_t>(operands, 5)) + 1;
    const float correction1 = static_cast<float>(Correction(moments.beta1, t));
    const float correction2 = static_cast<float>(Correction(moments.beta2, t));
    return [*this, correction1, correction2](float p, float& m, float& v, float gradient) {
      moments.Move(m, v, gradient / loss_scale);
      return m / correction1 / (std::sqrt(v / correction2) + moments.epsilon) + weight_decay * p;
    };
  }

  auto Begin(const KernelOperands& operands, float parameter_norm, float direction_norm) const {
    const bool comparable = parameter_norm != 0.0f && direction_norm != 0.0f;
    const float ratio = comparable ? std::min(parameter_norm / direction_norm, kLargestRatio) : 1.0f;
    return [direction = Direction(operands), rate = ScalarOperand<float>(operands, 4) * ratio](
               float& p, float& m, float& v, float gradient) { p -= rate * direction(p, m, v, gradient); };
  }
};

}  // namespace mpc::cpu
