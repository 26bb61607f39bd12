// Conversions between numbers that are not one instruction: what a device's cast applies.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/host_device.h"
#include "kernels/scalar/number.h"

namespace mpc::scalar {

/// Rounds `value` to an f32 that later rounding to 16 bits cannot tell from it. It is rounded to odd (Boldo and
/// Melquiond 2005), so that two roundings give what one would.
MPC_HOST_DEVICE inline float RoundToOdd(std::int64_t value) {
  const float nearest = static_cast<float>(value);
  // 2^63 is no 64-bit integer: numbers just below it round to it.
  const bool beyond = nearest >= 0x1p63f;
  const std::int64_t back = beyond ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(nearest);
  if (back == value && !beyond) return nearest;
  const bool away = beyond || (value > 0 ? back > value : back < value);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - (away ? 1u : 0u)) | 1u);
}

/// Truncates towards zero. Values beyond the integer's range become its limits, and NaN becomes 0.
template <typename Integer>
MPC_HOST_DEVICE Integer Saturate(float value) {
  if (value != value) return 0;
  // Both bounds are powers of two: exact in f32.
  if (value >= -static_cast<float>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::max();
  if (value <= static_cast<float>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(value);
}

/// The nearest integer in [low, high]. For 64-bit integers and numbers that emit instructions.
template <typename Long>
MPC_HOST_DEVICE Long Nearest(Long value, Long low, Long high) {
  return Select(value < low, low, Select(value > high, high, value));
}

/// Values beyond the integer's range become its limits.
template <typename Integer>
MPC_HOST_DEVICE Integer Saturate(std::int64_t value) {
  return static_cast<Integer>(
      Nearest<std::int64_t>(value, std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max()));
}

}  // namespace mpc::scalar
