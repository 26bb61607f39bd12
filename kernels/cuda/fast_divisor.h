// Division by a number that the host knows: a multiplication and two shifts in place of twenty instructions and more.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/host_device.h"

namespace mpc::cuda {

/// Divides numbers n in [0, 2^31) by `divisor` d in [1, 2^31). With 2^s >= d > 2^(s - 1), m = ceil(2^(31 + s) / d) is
/// less than 2^32. The error of n m / 2^(31 + s) is at most n / (d 2^31). That is less than 1 / d, so that the integer
/// part is the quotient.
struct FastDivisor {
  static constexpr int kShift = 31;
  int divisor;
  std::uint32_t reciprocal;
  int shift;

  static FastDivisor Create(int divisor) {
    const auto wide = static_cast<std::uint64_t>(divisor);
    const int shift = std::bit_width(static_cast<std::uint32_t>(divisor) - 1);
    const std::uint64_t scaled = std::uint64_t{1} << (kShift + shift);
    return {divisor, static_cast<std::uint32_t>((scaled + wide - 1) / wide), shift};
  }
  MPC_HOST_DEVICE int Quotient(int number) const {
    const std::uint64_t product = static_cast<std::uint64_t>(static_cast<std::uint32_t>(number)) * reciprocal;
    return static_cast<int>(static_cast<std::uint32_t>(product >> kShift) >> shift);
  }
};

}  // namespace mpc::cuda
