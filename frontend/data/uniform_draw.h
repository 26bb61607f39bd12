// Random numbers of the data sets: functions of their arguments alone.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/scalar/philox.h"

namespace mpc::data::internal {

/// Uniform in 0 .. limit - 1 for (seed, epoch, index); `stream` keeps uses apart that share a seed.
inline std::uint64_t UniformBelow(std::uint64_t limit, std::uint64_t seed, std::int64_t epoch, std::uint32_t stream,
                                  std::int64_t index) {
  const std::array<std::uint32_t, 4> words =
      PhiloxBlock(seed, static_cast<std::uint32_t>(epoch), stream, static_cast<std::uint64_t>(index));
  const std::uint64_t random = static_cast<std::uint64_t>(words[0]) << 32 | words[1];
  // The upper half of a 64 x 64 bit product is uniform below the limit, up to a bias of limit / 2^64.
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(random) * limit >> 64);
}

}  // namespace mpc::data::internal
