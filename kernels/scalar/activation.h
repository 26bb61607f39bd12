// Activation functions and their derivatives of one f32 element, (x) and (dy, x): what kernels and generated code
// apply. An operation with parameters is constructed from the attributes. Where `Apply` holds for |x| <= kFastLimit
// alone, `Slow` holds for every x.
#pragma once

#include <cmath>

#include "kernels/attributes.h"
#include "kernels/host_device.h"
#include "kernels/scalar/special_functions.h"

namespace mpc::scalar {

struct AbsOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return Abs(x);
  }
};
struct AbsGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    return Select(x > 0.0f, dy, Select(x < 0.0f, -dy, 0.0f));
  }
};

struct FloorOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return Floor(x);
  }
};

struct SquareOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return x * x;
  }
};
struct SquareGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    return 2.0f * dy * x;
  }
};

struct Log1pOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return Log1p(x);
  }
};
struct Log1pGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    return dy / (1.0f + x);
  }
};

/// sin(x) and cos(x) for every x. A GPU's f32 functions may be off by two units in the last place; its f64 ones,
/// rounded once, are as good as the host's.
MPC_HOST_DEVICE inline float SlowSine(float x) {
#ifdef __CUDA_ARCH__
  return static_cast<float>(::sin(static_cast<double>(x)));
#else
  return std::sin(x);
#endif
}
MPC_HOST_DEVICE inline float SlowCosine(float x) {
#ifdef __CUDA_ARCH__
  return static_cast<float>(::cos(static_cast<double>(x)));
#else
  return std::cos(x);
#endif
}

struct SinOp {
  static constexpr float kFastLimit = kTrigonometricLimit;
  MPC_HOST_DEVICE static float Apply(float x) { return SineOrCosine<false>(x); }
  MPC_HOST_DEVICE static float Slow(float x) { return SlowSine(x); }
};
struct SinGradOp {
  static constexpr float kFastLimit = kTrigonometricLimit;
  MPC_HOST_DEVICE static float Apply(float dy, float x) { return dy * SineOrCosine<true>(x); }
  MPC_HOST_DEVICE static float Slow(float dy, float x) { return dy * SlowCosine(x); }
};
struct CosOp {
  static constexpr float kFastLimit = kTrigonometricLimit;
  MPC_HOST_DEVICE static float Apply(float x) { return SineOrCosine<true>(x); }
  MPC_HOST_DEVICE static float Slow(float x) { return SlowCosine(x); }
};
struct CosGradOp {
  static constexpr float kFastLimit = kTrigonometricLimit;
  MPC_HOST_DEVICE static float Apply(float dy, float x) { return -dy * SineOrCosine<false>(x); }
  MPC_HOST_DEVICE static float Slow(float dy, float x) { return -dy * SlowSine(x); }
};

struct SiluOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return x * Sigmoid(x);
  }
};
struct SiluGradOp {
  // 1 - s is the sigmoid of -x, which keeps its digits where s rounds to 1.
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    return dy * (Sigmoid(x) * (1.0f + x * Sigmoid(-x)));
  }
};

struct GeluOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return x * NormalDistribution<F>::At(x).cdf;
  }
};
struct GeluGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    const auto normal = NormalDistribution<F>::At(x);
    return dy * (normal.cdf + x * normal.density);
  }
};

// (1 + tanh(u)) / 2 = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
inline constexpr float kTwiceGeluSlope = 1.5957691216f;
inline constexpr float kGeluCubic = 0.044715f;

struct GeluTanhOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return x * Sigmoid(kTwiceGeluSlope * (x + kGeluCubic * x * x * x));
  }
};
struct GeluTanhGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    // Beyond 30 the sigmoid is 0 or 1 and its slope 0; unlimited, the cube would overflow into 0 * infinity.
    F limited = Select(x > 30.0f, 30.0f, x);
    limited = Select(limited < -30.0f, -30.0f, limited);
    const F square = limited * limited;
    const F twice_u = kTwiceGeluSlope * (limited + kGeluCubic * square * limited);
    const F slope = kTwiceGeluSlope * (1.0f + 3.0f * kGeluCubic * square);
    return dy * (Sigmoid(twice_u) * (1.0f + limited * Sigmoid(-twice_u) * slope));
  }
};

struct LeakyReluOp {
  explicit LeakyReluOp(float alpha) : alpha(alpha) {}
  explicit LeakyReluOp(const Attributes& attributes) : alpha(static_cast<float>(attributes.GetDouble("alpha", 0.2f))) {}
  template <typename F>
  MPC_HOST_DEVICE F Apply(F x) const {
    return Select(x > 0.0f, x, alpha * x);
  }
  template <typename F>
  MPC_HOST_DEVICE F Apply(F dy, F x) const {
    return Select(x > 0.0f, dy, alpha * dy);
  }
  float alpha;
};

/// Operands x and its slope.
struct PreluOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x, F alpha) {
    return Select(x > 0.0f, x, alpha * x);
  }
};
/// One element's share of the slope's gradient.
struct PreluSlopeGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    return Select(x > 0.0f, 0.0f, dy * x);
  }
};

struct PowOp {
  explicit PowOp(const Attributes& attributes) : power(static_cast<float>(attributes.GetDouble("exponent"))) {}
  MPC_HOST_DEVICE float Apply(float x) const { return static_cast<float>(power(x)); }
  Power power;
};
struct PowGradOp {
  explicit PowGradOp(const Attributes& attributes)
      : exponent(static_cast<float>(attributes.GetDouble("exponent"))), power(exponent - 1) {}
  MPC_HOST_DEVICE float Apply(float dy, float x) const {
    return exponent == 0 ? 0.0f : static_cast<float>(static_cast<double>(dy) * exponent * power(x));
  }
  double exponent;
  Power power;
};

struct ClampOp {
  ClampOp(float minimum, float maximum) : minimum(minimum), maximum(maximum) {}
  explicit ClampOp(const Attributes& attributes)
      : minimum(static_cast<float>(attributes.GetDouble("minimum"))),
        maximum(static_cast<float>(attributes.GetDouble("maximum"))) {}
  // NaN passes both comparisons.
  template <typename F>
  MPC_HOST_DEVICE F Apply(F x) const {
    const F above = Select(x < minimum, minimum, x);
    return Select(above > maximum, maximum, above);
  }
  template <typename F>
  MPC_HOST_DEVICE F Apply(F dy, F x) const {
    return Select((x >= minimum) & (x <= maximum), dy, 0.0f);
  }
  float minimum, maximum;
};

}  // namespace mpc::scalar
