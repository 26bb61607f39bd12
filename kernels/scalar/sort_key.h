// Keys that sort the elements of a line. No two elements of a line have one key, so that every way of sorting gives one
// order.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/scalar/number.h"

namespace mpc::scalar {

/// The key of the value `x` at `index` of a line. Ascending keys are ascending or descending values, and equal values
/// in the order of their indices. Zeros of either sign are equal, and so are all NaN, which are larger than all others.
/// The index is below 2^31. No key is as large as kLastKey.
inline constexpr std::uint64_t kLastKey = ~std::uint64_t{0};
MPC_HOST_DEVICE inline std::uint64_t SortKey(float x, std::int64_t index, bool descending) {
  const std::uint32_t bits = BitsOf(x == 0.0f ? 0.0f : x);
  // The bits of positive numbers ascend with them, and those of negative ones descend.
  const std::uint32_t ascending = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  const std::uint32_t rank = x != x ? 0xffffffffu : ascending;
  return std::uint64_t{descending ? ~rank : rank} << 32 | static_cast<std::uint64_t>(index);
}
MPC_HOST_DEVICE inline std::int32_t IndexOfKey(std::uint64_t key) {
  return static_cast<std::int32_t>(key & 0x7fffffffu);
}

}  // namespace mpc::scalar
