// Offsets for temporaries in one arena: liveness intervals packed best-fit, in the best of a few orders.
#pragma once

#include <cstddef>
#include <vector>

namespace mpc::runtime {

/// A temporary that is live from instruction `first` to instruction `last`, both included.
struct LiveInterval {
  std::size_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< one an interval, 64-byte aligned
  std::size_t arena_bytes = 0;
  /// The largest sum of bytes live at one instruction: no plan can be smaller.
  std::size_t lower_bound = 0;
};

/// Intervals that overlap in time never overlap in memory. Places the largest first, each in the smallest gap; where
/// that stays above the lower bound, also each in the lowest gap, and what is live at the peak first, the longest-lived
/// or what ends last in front; keeps the smallest arena. Deterministic: ties go to the interval that ends last, then to
/// the earlier one, and to the way named first.
MemoryPlan PlanMemory(const std::vector<LiveInterval>& intervals);

}  // namespace mpc::runtime
