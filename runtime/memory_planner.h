// Offsets for temporaries in one arena: liveness intervals packed best-fit, in the best of a few orders.
//
// The problem is dynamic storage allocation, which is NP-hard (Garey and Johnson 1979, "Computers and Intractability").
// Pisarchyk and Lee 2020, "Efficient memory management for deep neural net inference", place by size with best fit.
// They call it Greedy by Size for Offset Calculation. The other orders and lowest fit are tried beside it.
//
// Nothing bounds how far an arena lies above the lower bound. Placed intervals never move again. There are at most 6
// tries, or 18 with rigid sets. In a try each interval meets the ranges of addresses that are taken while it lives
// (runtime/occupied_memory.h). In a training step these are few. Where holes stay between most of the intervals, a try
// takes time quadratic in their number.
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

/// Intervals that lie at fixed distances from each other, such as the tensors of one flat buffer. Each has a life of
/// its own.
struct RigidIntervals {
  std::vector<std::size_t> intervals;  ///< positions among the intervals; each is in one set at most
  std::vector<std::size_t> distances;  ///< bytes from the set's first byte to each interval, multiples of 64
};

/// The limit for callers that accept a plan of any size.
inline constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();

struct MemoryPlan {
  std::vector<std::size_t> offsets;  ///< one an interval, 64-byte aligned; none where no plan was small enough
  std::size_t arena_bytes = 0;       ///< kAnyBytes where no plan was small enough
  /// The largest sum of bytes live at one instruction: no plan can be smaller.
  std::size_t lower_bound = 0;
};

/// Places intervals in one arena. Intervals that overlap in time never overlap in memory. Those of a rigid set keep
/// their distances. Tries several placement orders: by size, or intervals live at the peak first (by lifetime, or by
/// end). A rigid set is ordered by all its bytes; it is also tried before and after everything else. Tries each order
/// with best fit and with lowest fit. Keeps the smallest arena, and stops where it equals the lower bound, which
/// ignores rigid distances. Deterministic: ties go to the interval that ends last, then to the earlier one, and to the
/// order and fit named first. An arena of more than `most` bytes is no plan. The search ends as soon as that is known.
MemoryPlan PlanMemory(const std::vector<LiveInterval>& intervals, const std::vector<RigidIntervals>& rigid = {},
                      std::size_t most = kAnyBytes);

}  // namespace mpc::runtime
