// exp, log, tanh and sigmoid in f32, free of branches, calls and divisions, so that loops over them vectorise. Log and
// Tanh have the polynomials of the Cephes library (S. L. Moshier, single precision). Largest errors against f64, every
// seventh f32 bit pattern: Exp 0.89 ulp, Log 0.84 ulp, Tanh 1.38 ulp, Sigmoid 2.00 ulp. Infinities, NaN, overflow and
// subnormal results are those of <cmath>.
//
// Exp takes multiples of ln 2 from its argument in two parts (Cody and Waite 1980, "Software manual for the elementary
// functions").
//
// ShareExp and ShareExp2 are for terms of a sum and tails of a function, where a subnormal number is as good as 0. They
// take two thirds of the time of Exp.
#pragma once

#include "kernels/host_device.h"
#include "kernels/scalar/number.h"

namespace mpc::scalar {

/// exp(r) for |r| <= 0.3468: the minimax polynomial, relative error 3.2e-9.
template <typename F>
MPC_HOST_DEVICE inline F ReducedExp(F r) {
  F p = Fma(r, 1.38207339e-3f, 8.36867746e-3f);
  p = Fma(p, r, 4.16682661e-2f);
  p = Fma(p, r, 0.166665211f);
  p = Fma(p, r, 0.49999994f);
  p = Fma(p, r, 1.0f);
  return Fma(p, r, 1.0f);
}

/// exp(x) for x in [-110, 90], or NaN.
template <typename F>
MPC_HOST_DEVICE inline F ExpWithin(F x) {
  // n = round(x / ln 2).
  const F shifted = Fma(x, 1.44269504088896341f, kRoundingShift);
  const F n = shifted - kRoundingShift;
  // ln 2 in two parts, the first of 10 bits: n * 0.693359375 is exact.
  const F r = Fma(n, 2.12194440e-4f, Fma(n, -0.693359375f, x));
  return TimesPowerOfTwo(ReducedExp(r), shifted);
}

template <typename F>
MPC_HOST_DEVICE inline F Exp(F x) {
  // Beyond these the result is infinite or 0; NaN passes both comparisons unchanged.
  const F below = Select(x > 90.0f, 90.0f, x);
  return ExpWithin(Select(below < -110.0f, -110.0f, below));
}

/// Added to a number n from -127 to 128, it puts the bits of 2^n at the end of the sum's bits.
inline constexpr float kPowerShift = kRoundingShift + 127.0f;

/// value * 2^n, where `shifted` is kPowerShift + n: 0 for n = -127, infinite for n = 128.
template <typename F>
MPC_HOST_DEVICE inline F TimesSmallPowerOfTwo(F value, F shifted) {
  return value * FloatFromBits(BitsOf(shifted) << 23);
}

/// exp(x) for x up to 89, or NaN, but 0 below 2^-126.5 and infinite above 2^127.5. Its relative error, in units of
/// 2^-24: at most 2.6 for |x| up to 1, 3.9 down to -30, 6.6 where it ends.
template <typename F>
MPC_HOST_DEVICE inline F BoundedShareExp(F x) {
  const F within = Select(x < -88.0f, -88.0f, x);
  const F shifted = Fma(within, 1.44269504088896341f, kPowerShift);
  // ln 2 in one part: f32 has it to 2.8e-9, which n = 127 makes 4 u of the result.
  const F r = Fma(shifted - kPowerShift, -0.69314718f, within);
  // The minimax polynomial for |r| <= 0.3468, relative error 9.2e-8.
  F p = Fma(r, 8.28946941e-3f, 4.18982133e-2f);
  p = Fma(p, r, 0.166676506f);
  p = Fma(p, r, 0.499991477f);
  p = Fma(p, r, 0.999999702f);
  return TimesSmallPowerOfTwo(Fma(p, r, 1.0f), shifted);
}

/// BoundedShareExp for any x.
template <typename F>
MPC_HOST_DEVICE inline F ShareExp(F x) {
  return BoundedShareExp(Select(x > 89.0f, 89.0f, x));
}

/// 2^v for v in [-127.4, 0], or NaN; 0 below 2^-126.5. Its relative error is at most 2.6 * 2^-24.
template <typename F>
MPC_HOST_DEVICE inline F ShareExp2(F v) {
  const F shifted = v + kPowerShift;
  const F f = v - (shifted - kPowerShift);
  // The minimax polynomial for |f| <= 0.5002, relative error 9.4e-8.
  F p = Fma(f, 1.32691397e-3f, 9.67130717e-3f);
  p = Fma(p, f, 5.55071197e-2f);
  p = Fma(p, f, 0.240222469f);
  p = Fma(p, f, 0.693147004f);
  return TimesSmallPowerOfTwo(Fma(p, f, 1.0f), shifted);
}

template <typename F>
MPC_HOST_DEVICE inline F Log(F x) {
  const auto subnormal = x < 0x1p-126f;
  const F scaled = Select(subnormal, x * 0x1p23f, x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  const UnsignedOf<F> bits = BitsOf(scaled);
  const IntegerOf<F> offset = IntegerOf<F>(bits - 0x3f3504f3u) >> 23;
  const F m = FloatFromBits(bits - (UnsignedOf<F>(offset) << 23));
  const F e = ToFloat(offset) - Select(subnormal, F(23.0f), F(0.0f));
  const F f = m - 1.0f;
  const F z = f * f;
  F p = Fma(f, 7.0376836292e-2f, -1.1514610310e-1f);
  p = Fma(p, f, 1.1676998740e-1f);
  p = Fma(p, f, -1.2420140846e-1f);
  p = Fma(p, f, 1.4249322787e-1f);
  p = Fma(p, f, -1.6668057665e-1f);
  p = Fma(p, f, 2.0000714765e-1f);
  p = Fma(p, f, -2.4999993993e-1f);
  p = Fma(p, f, 3.3333331174e-1f);
  const F tail = Fma(f * z, p, Fma(-0.5f, z, e * -2.12194440e-4f));
  const F finite = Fma(e, 0.693359375f, f + tail);
  const float infinity = __builtin_inff();
  F y = Select(x == infinity, infinity, finite);
  y = Select(x == 0.0f, -infinity, y);
  return Select(x >= 0.0f, y, __builtin_nanf(""));
}

/// The logistic function of a number's magnitude, with either sign: 1 / (1 + exp(-a)) and 1 / (1 + exp(a)). The latter
/// keeps its relative accuracy down to the subnormals.
template <typename F>
struct Logistic {
  F upper, lower;

  /// For a in [0, 110], or NaN.
  MPC_HOST_DEVICE static Logistic OfArgument(F a) { return OfExponential(ExpWithin(-a)); }

  /// For e = exp(-a) in [0, 1], or NaN.
  MPC_HOST_DEVICE static Logistic OfExponential(F e) {
    // 1 / (1 + e): a cubic, whose residual on [0, 1] is T4(2 e - 1) / 577, and one step of third order.
    F y = Fma(e, -0.221837088f, 0.66551125f);
    y = Fma(y, e, -0.942807615f);
    y = Fma(y, e, 0.998266876f);
    // 1 - y is exact, for y is about 1/2 to 1.
    const F residual = Fma(-e, y, 1.0f - y);
    const F upper = Fma(Fma(residual, residual, residual), y, y);
    return {upper, e * upper};
  }
};

template <typename F>
MPC_HOST_DEVICE inline F Tanh(F x) {
  const F magnitude = Abs(x);
  const F z = x * x;
  F p = Fma(z, -5.70498872745e-3f, 2.06390887954e-2f);
  p = Fma(p, z, -5.37397155531e-2f);
  p = Fma(p, z, 1.33314422036e-1f);
  p = Fma(p, z, -3.33332819422e-1f);
  const F small = Fma(p * z, x, x);
  const F twice = Select(magnitude > 55.0f, 110.0f, 2.0f * magnitude);
  const F large = Fma(Logistic<F>::OfArgument(twice).lower, -2.0f, 1.0f);
  return Select(magnitude > 0.625f, CopySign(large, x), small);
}

template <typename F>
MPC_HOST_DEVICE inline F Sigmoid(F x) {
  const F magnitude = Abs(x);
  const auto logistic = Logistic<F>::OfArgument(Select(magnitude > 110.0f, 110.0f, magnitude));
  return Select(x < 0.0f, logistic.lower, logistic.upper);
}

}  // namespace mpc::scalar
