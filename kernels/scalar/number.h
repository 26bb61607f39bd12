// The functions that the arithmetic of an element needs beside operators, for f32 and f64. The rest of kernels/scalar
// is written for any kind of number that has these functions and types. Kernels compute with `float`. The code
// generator computes with numbers that emit instructions (compiler/element/number_functions.h), whose functions
// argument-dependent lookup finds. So generated code does what the kernels do, operation by operation.
//
// There is one rule for such code: nothing branches on an element. A choice is a Select.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/host_device.h"

namespace mpc::scalar {

/// The types that go with a kind of f32 number.
template <typename F>
struct NumberTraits;

template <>
struct NumberTraits<float> {
  using Wide = double;             ///< f64
  using Integer = std::int32_t;    ///< as wide as the number
  using Unsigned = std::uint32_t;  ///< its bits
};

template <typename F>
using WideOf = typename NumberTraits<F>::Wide;
template <typename F>
using IntegerOf = typename NumberTraits<F>::Integer;
template <typename F>
using UnsignedOf = typename NumberTraits<F>::Unsigned;

/// `a` where the condition holds, else `b`. Both are computed.
template <typename T>
MPC_HOST_DEVICE constexpr T Select(bool condition, T a, T b) {
  return condition ? a : b;
}

/// a * b + c, rounded once.
MPC_HOST_DEVICE inline float Fma(float a, float b, float c) { return std::fma(a, b, c); }
MPC_HOST_DEVICE inline float Sqrt(float x) { return std::sqrt(x); }
MPC_HOST_DEVICE inline float Abs(float x) { return std::fabs(x); }
MPC_HOST_DEVICE inline float Floor(float x) { return std::floor(x); }
MPC_HOST_DEVICE inline float CopySign(float magnitude, float sign) { return std::copysign(magnitude, sign); }

MPC_HOST_DEVICE inline std::uint32_t BitsOf(float x) { return std::bit_cast<std::uint32_t>(x); }
MPC_HOST_DEVICE inline float FloatFromBits(std::uint32_t bits) { return std::bit_cast<float>(bits); }

/// Converts to f32, rounding to nearest even where f32 does not hold the integer.
MPC_HOST_DEVICE inline float ToFloat(std::int32_t x) { return static_cast<float>(x); }
MPC_HOST_DEVICE inline float ToFloat(std::uint32_t x) { return static_cast<float>(x); }
MPC_HOST_DEVICE inline float ToFloat(double x) { return static_cast<float>(x); }

/// Added to a number below 2^21, it rounds that number to an integer, which the low bits of the sum then hold.
inline constexpr float kRoundingShift = 0x1.8p23f;

/// value * 2^n, rounded once, where `shifted` is kRoundingShift + n, n an integer in [-252, 254].
template <typename F>
MPC_HOST_DEVICE inline F TimesPowerOfTwo(F value, F shifted) {
  // Two factors, so that neither over- nor underflows before the product does. Bits beyond the lowest nine are shifted
  // out; those of n end up where an exponent has its own.
  const IntegerOf<F> exponent = IntegerOf<F>(BitsOf(shifted)) << 23;
  const IntegerOf<F> half = (exponent >> 1) & IntegerOf<F>(-0x800000);
  const IntegerOf<F> one = 0x3f800000;
  return value * FloatFromBits(UnsignedOf<F>(half + one)) * FloatFromBits(UnsignedOf<F>(exponent - half + one));
}

/// The 64 bits of a product: its upper and lower half.
template <typename U>
struct WideProduct {
  U upper, lower;
};
MPC_HOST_DEVICE inline WideProduct<std::uint32_t> MultiplyWide(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(product)};
}

}  // namespace mpc::scalar
