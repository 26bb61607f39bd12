// Which calls of a step may run at once, from the memory that they touch.
#pragma once

#include <cstddef>
#include <vector>

namespace mpc::runtime {

/// Bytes [begin, end) of device memory.
struct MemoryRange {
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

/// What a call reads and writes. Its workspace is written.
struct CallMemory {
  std::vector<MemoryRange> reads, writes;
  bool alone = false;  ///< nothing runs beside it

  /// Bytes of all ranges.
  std::size_t bytes() const;
};

/// A call that touches more fills a GPU by itself. Two of them at once take each other's caches.
inline constexpr std::size_t kLargeCallBytes = std::size_t{16} << 20;

/// The place of a call. It follows the earlier calls of its branch, and those that it awaits.
struct BranchPlace {
  std::size_t branch = 0;
  std::vector<std::size_t> awaits;  ///< calls of other branches, as positions in the step
};

/// Deals the calls of a step, in their order, to at most `branches` branches. Two calls of which one writes what the
/// other touches stay in their order. Where branches suffice no other two small ones are ordered. A call goes to the
/// branch of a call that it needs, if that one came last there; so a chain stays on one branch. Large calls stay on the
/// first branch. Takes time quadratic in the calls.
std::vector<BranchPlace> PlanBranches(const std::vector<CallMemory>& calls, std::size_t branches);

}  // namespace mpc::runtime
