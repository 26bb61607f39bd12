// Conversions between numbers that are not one instruction: what a device's cast applies.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/host_device.h"

namespace mpc::scalar {

/// An f32 that later rounding to 16 bits cannot tell from `value`: rounded to odd (Boldo and Melquiond 2005), so that
/// two roundings give what one would.
MPC_HOST_DEVICE inline float RoundToOdd(std::int64_t value) {
  const double wide = static_cast<double>(value);
  const float nearest = static_cast<float>(wide);
  if (static_cast<double>(nearest) == wide) return nearest;
  const bool away = std::fabs(static_cast<double>(nearest)) > std::fabs(wide);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - (away ? 1u : 0u)) | 1u);
}

/// Truncated towards zero; beyond the integer's range its limits, of NaN 0.
template <typename Integer>
MPC_HOST_DEVICE Integer Saturate(float value) {
  if (value != value) return 0;
  // Both bounds are powers of two: exact in f32.
  if (value >= -static_cast<float>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::max();
  if (value <= static_cast<float>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(value);
}

}  // namespace mpc::scalar
