// Offsets for temporaries in one arena: liveness intervals packed best-fit, in the best of a few orders.
#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace mpc::runtime {

/// A temporary that is live from instruction `first` to instruction `last`, both included.
struct LiveInterval {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

/// Intervals that lie at fixed distances from each other, each with a life of its own: tensors of one flat buffer.
struct RigidIntervals {
  std::vector<std::size_t> intervals;  ///< positions among the intervals; each is in one set at most
  std::vector<std::size_t> distances;  ///< of each from the beginning of the first byte of all, multiples of 64
};

/// A plan of any size will do.
inline constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< one an interval, 64-byte aligned; none where no plan was small enough
  std::size_t arena_bytes = 0;       ///< kAnyBytes where no plan was small enough
  /// The largest sum of bytes live at one instruction: no plan can be smaller.
  std::size_t lower_bound = 0;
};

/// Intervals that overlap in time never overlap in memory; those of a rigid set keep their distances. Places the
/// largest first, or what is live at the peak first, the longest-lived or what ends last in front; each in the smallest
/// gap, or in the lowest; rigid sets by all their bytes, or before or after everything else. Keeps the smallest arena,
/// and stops where it is the lower bound, which is that of the intervals alone. Deterministic: ties go to the interval
/// that ends last, then to the earlier one, and to the way named first. An arena of more than `most` bytes is no plan:
/// looking for one ends as soon as that is known.
MemoryPlan PlanMemory(const std::vector<LiveInterval>& intervals, const std::vector<RigidIntervals>& rigid = {},
                      std::size_t most = kAnyBytes);

}  // namespace mpc::runtime
