// Activation functions and their derivatives of one f32 element, (x) and (dy, x): what kernels and generated code
// apply. An operation with parameters is constructed from the attributes. Where `Apply` holds for |x| <= kFastLimit
// alone, `Slow` holds for every x.
#pragma once

#include <cmath>

#include "kernels/attributes.h"
#include "kernels/host_device.h"
#include "kernels/known_attributes.h"
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
    const F magnitude = Abs(x);
    const auto logistic = Logistic<F>::OfArgument(Select(magnitude > 110.0f, 110.0f, magnitude));
    const F s = Select(x < 0.0f, logistic.lower, logistic.upper);
    const F rest = Select(x < 0.0f, logistic.upper, logistic.lower);
    return dy * (s * (1.0f + x * rest));
  }
};

// Outside (-3, 3) the result is 0 or x: what `between` overflows to for a huge x is dropped.
inline constexpr float kSixth = 1.0f / 6.0f;
struct HardSwishOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    const F between = x * ((x + 3.0f) * kSixth);
    return Select(x <= -3.0f, 0.0f, Select(x >= 3.0f, x, between));
  }
};
struct HardSwishGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    const F between = dy * ((x + x + 3.0f) * kSixth);
    return Select(x <= -3.0f, 0.0f, Select(x >= 3.0f, dy, between));
  }
};

struct ErfOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return Erf(x);
  }
};
struct ErfGradOp {
  // x^2 = square + lost exactly: the exponential would amplify the rounding of the square. It is 0 beyond 10.5.
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    const F a = Select(Abs(x) > 10.5f, 10.5f, Abs(x));
    const F square = a * a;
    const F lost = Fma(a, a, -square);
    const F bell = Exp(-square);
    return dy * (1.12837917f * Fma(-lost, bell, bell));
  }
};

// With a = |x| and Phi(-x) = 1 - Phi(x), the value x Phi(x) is max(x, 0) - a Phi(-a). Its slope is w = Phi(-a) - a
// Phi'(a) for x < 0, and 1 - w for x > 0. So only the tail, which is small, is computed. Beyond some a it is 0.

/// max(x, 0) - a tail. NaN passes, and -infinity, where the product of x and 0 is asked for, gives one.
template <typename F>
MPC_HOST_DEVICE inline F GeluFromTail(F x, F a, F tail) {
  return Fma(Select(x < -a, x, -a), tail, Select(x < 0.0f, 0.0f, x));
}
template <typename F>
MPC_HOST_DEVICE inline F GeluGradFromSlope(F dy, F x, F w) {
  return dy * Select(x > 0.0f, 1.0f - w, w);
}

struct GeluOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    const F a = Select(Abs(x) > NormalTail<F>::kEnd, NormalTail<F>::kEnd, Abs(x));
    const auto normal = NormalTail<F>::Create(a);
    return GeluFromTail(x, a, normal.bell * normal.ratio);
  }
};
struct GeluGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    const F magnitude = Abs(x);
    const auto normal = NormalTail<F>::Create(Select(magnitude > NormalTail<F>::kEnd, NormalTail<F>::kEnd, magnitude));
    // The density is bell / sqrt(2 pi).
    return GeluGradFromSlope(dy, x, normal.bell * Fma(magnitude, -0.398942280f, normal.ratio));
  }
};

// (1 + tanh(u)) / 2 = sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3). With a power of 2 in place of the exponential
// its reduction costs nothing: log2(e) is in the coefficients.
inline constexpr double kLog2E = 1.44269504088896341;
inline constexpr float kTwiceGeluSlope = 1.5957691216f;
inline constexpr float kTwiceGeluCubic = 1.5957691216f * 0.044715f;
// exp(-2 u) is 0 from there on, and 2 u log2(e) is 127.0.
inline constexpr float kGeluTanhEnd = 10.03f;

/// sigmoid(-2 u) and sigmoid(2 u) at a in [0, kGeluTanhEnd], `square` its square; the former is 0 below 2^-126.5.
template <typename F>
MPC_HOST_DEVICE inline Logistic<F> GeluTanhLogistic(F a, F square) {
  constexpr auto kSlope = static_cast<float>(-1.5957691216 * kLog2E);
  constexpr auto kCubic = static_cast<float>(-1.5957691216 * 0.044715 * kLog2E);
  return Logistic<F>::OfExponential(ShareExp2(a * Fma(square, kCubic, kSlope)));
}

struct GeluTanhOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    const F a = Select(Abs(x) > kGeluTanhEnd, kGeluTanhEnd, Abs(x));
    return GeluFromTail(x, a, GeluTanhLogistic(a, a * a).lower);
  }
};
struct GeluTanhGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F x) {
    const F a = Select(Abs(x) > kGeluTanhEnd, kGeluTanhEnd, Abs(x));
    const F square = a * a;
    const auto logistic = GeluTanhLogistic(a, square);
    // a times the derivative of 2 u by a.
    const F growth = a * Fma(square, 3.0f * kTwiceGeluCubic, kTwiceGeluSlope);
    return GeluGradFromSlope(dy, x, logistic.lower * Fma(-growth, logistic.upper, 1.0f));
  }
};

struct LeakyReluOp {
  explicit LeakyReluOp(float alpha) : alpha(alpha) {}
  explicit LeakyReluOp(const Attributes& attributes) : alpha(attributes.Get(attribute::kSlope)) {}
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

/// The operands are x and its slope.
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
