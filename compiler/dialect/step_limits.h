// How large the numbers of a training step may be: what no network and no cluster comes near.
#pragma once

#include <cstdint>

namespace mpc {

/// The most losses of a step that have a scaler each.
inline constexpr std::int64_t kMostLosses = 1024;
/// The most micro-steps of an update. Their counter has 32 bits, and each doubling is a level of sums.
inline constexpr std::int64_t kMostAccumulationSteps = std::int64_t{1} << 20;
/// The most processes that train together. Products of these numbers stay far from the largest integer.
inline constexpr std::int64_t kMostProcesses = std::int64_t{1} << 20;

} // namespace mpc
