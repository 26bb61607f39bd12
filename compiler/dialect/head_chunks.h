// The largest number of chunks that a language model's head may be computed in (mpc-chunk-head).
#pragma once

#include <cstdint>

namespace mpc {

/// More would only add launches: a chunk of the largest batch that fits has few rows long before.
inline constexpr std::int64_t kMostHeadChunks = 4096;

} // namespace mpc
