#include "runtime/memory_planner.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <utility>

#include "runtime/aligned_buffer.h"

namespace mpc::runtime {
namespace {

std::size_t PaddedBytes(const LiveInterval& interval) {
  return interval.bytes == 0 ? 0 : AlignedBuffer::Padded(interval.bytes);
}

/// The largest sum of padded bytes live at one instruction, and the first such instruction.
struct Peak {
  std::size_t bytes = 0;
  std::size_t time = 0;
};

/// The peak lies where some interval begins.
Peak FindPeak(const std::vector<LiveInterval>& intervals) {
  std::vector<std::size_t> begins;
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    begins.push_back(i);
    ends.push_back(i);
  }
  std::sort(begins.begin(), begins.end(),
            [&](std::size_t a, std::size_t b) { return intervals[a].first < intervals[b].first; });
  std::sort(ends.begin(), ends.end(),
            [&](std::size_t a, std::size_t b) { return intervals[a].last < intervals[b].last; });
  std::size_t live = 0;
  Peak peak;
  std::size_t ended = 0;
  for (std::size_t begin : begins) {
    assert(intervals[begin].first <= intervals[begin].last && "an interval ends no earlier than it begins");
    while (intervals[ends[ended]].last < intervals[begin].first) live -= PaddedBytes(intervals[ends[ended++]]);
    live += PaddedBytes(intervals[begin]);
    if (live > peak.bytes) peak = {live, intervals[begin].first};
  }
  return peak;
}

/// A unit that is placed as a whole: one interval, or those of a rigid set.
struct Block {
  RigidIntervals parts;
  std::size_t bytes = 0;  ///< bytes of all parts together
  std::size_t first = 0;  ///< instruction at which the first part begins
  std::size_t last = 0;   ///< instruction at which the last part ends
};

/// Every interval that takes memory, in one block each.
std::vector<Block> BlocksOf(const std::vector<LiveInterval>& intervals, const std::vector<RigidIntervals>& rigid) {
  std::vector<Block> blocks;
  std::vector<bool> is_rigid(intervals.size(), false);
  const auto add = [&](RigidIntervals parts) {
    Block block;
    assert(parts.intervals.size() == parts.distances.size() && "each interval of a set has a distance");
    block.first = intervals[parts.intervals.front()].first;
    block.parts = std::move(parts);
    for (std::size_t part : block.parts.intervals) {
      block.bytes += PaddedBytes(intervals[part]);
      block.first = std::min(block.first, intervals[part].first);
      block.last = std::max(block.last, intervals[part].last);
    }
    if (block.bytes > 0) blocks.push_back(std::move(block));
  };
  for (const RigidIntervals& set : rigid) {
    for (std::size_t part : set.intervals) {
      assert(part < intervals.size() && !is_rigid[part] && "an interval is in one set at most");
      is_rigid[part] = true;
    }
    if (!set.intervals.empty()) add(set);
  }
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    if (!is_rigid[i]) add({{i}, {0}});
  }
  return blocks;
}

/// A block that begins between the two offsets would lay a part of it over something else.
struct Forbidden {
  std::ptrdiff_t above;
  std::ptrdiff_t below;
};

/// Which gap a block takes.
enum class Fit { kSmallest, kLowest };

/// Finds the smallest or the lowest gap that holds a block. Among equal gaps it takes the lowest.
class GapSearch {
 public:
  explicit GapSearch(Fit fit) : fit_(fit) {}

  /// Takes the next range where the block cannot begin, in the order of `above`. Returns whether no further range can
  /// lead to a better gap.
  bool Pass(const Forbidden& range) {
    const std::ptrdiff_t room = range.above - cursor_;
    if (room >= 0 && (best_room_ < 0 || room < best_room_)) {
      best_room_ = room;
      best_ = cursor_;
      if (fit_ == Fit::kLowest || room == 0) return true;
    }
    cursor_ = std::max(cursor_, range.below);
    return false;
  }

  /// The gap's beginning. Where no gap holds the block, it lies behind all ranges.
  std::size_t Begin() const { return static_cast<std::size_t>(best_room_ < 0 ? cursor_ : best_); }

 private:
  Fit fit_;
  std::ptrdiff_t cursor_ = 0;
  std::ptrdiff_t best_ = 0;
  std::ptrdiff_t best_room_ = -1;
};

/// The intervals that have a place already, in the order of addresses.
class Placed {
 public:
  void Add(const LiveInterval& interval, std::size_t offset) {
    const Entry entry{offset, offset + PaddedBytes(interval), interval.first, interval.last};
    entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), entry,
                                     [](const Entry& a, const Entry& b) { return a.begin < b.begin; }),
                    entry);
  }

  /// Where a block of one part begins. Nothing is collected, and the search ends where no better gap can come.
  std::size_t FindGap(const LiveInterval& part, Fit fit) const {
    const auto bytes = static_cast<std::ptrdiff_t>(PaddedBytes(part));
    GapSearch search(fit);
    for (const Entry& other : entries_) {
      if (!AreLiveTogether(part, other)) continue;
      if (search.Pass({static_cast<std::ptrdiff_t>(other.begin) - bytes, static_cast<std::ptrdiff_t>(other.end)}))
        break;
    }
    return search.Begin();
  }

  /// Adds the ranges where a block cannot begin. `part` is the part of the block that lies `distance` bytes behind its
  /// beginning. The added ranges are sorted, and overlapping ones are merged. Ranges that only touch stay apart, since
  /// a block may begin between them.
  void AddForbidden(const LiveInterval& part, std::size_t distance, std::vector<Forbidden>& forbidden) const {
    const auto begin = static_cast<std::ptrdiff_t>(distance);
    const auto end = begin + static_cast<std::ptrdiff_t>(PaddedBytes(part));
    const std::size_t own = forbidden.size();
    for (const Entry& other : entries_) {
      if (!AreLiveTogether(part, other)) continue;
      const auto other_end = static_cast<std::ptrdiff_t>(other.end);
      if (other_end <= begin) continue;
      const Forbidden range{static_cast<std::ptrdiff_t>(other.begin) - end, other_end - begin};
      if (forbidden.size() > own && range.above < forbidden.back().below) {
        forbidden.back().below = std::max(forbidden.back().below, range.below);
      } else {
        forbidden.push_back(range);
      }
    }
  }

 private:
  struct Entry {
    std::size_t begin, end;   ///< addresses
    std::size_t first, last;  ///< instructions
  };

  static bool AreLiveTogether(const LiveInterval& part, const Entry& other) {
    return other.first <= part.last && part.first <= other.last;
  }

  std::vector<Entry> entries_;
};

/// Where the first byte of a rigid set lies.
std::size_t FindGapOfSet(const std::vector<LiveInterval>& intervals, const RigidIntervals& parts, const Placed& placed,
                         Fit fit) {
  std::vector<Forbidden> forbidden;
  for (std::size_t i = 0; i < parts.intervals.size(); ++i) {
    const LiveInterval& part = intervals[parts.intervals[i]];
    if (part.bytes > 0) placed.AddForbidden(part, parts.distances[i], forbidden);
  }
  std::sort(forbidden.begin(), forbidden.end(),
            [](const Forbidden& a, const Forbidden& b) { return a.above < b.above; });
  GapSearch search(fit);
  for (const Forbidden& range : forbidden) {
    if (search.Pass(range)) break;
  }
  return search.Begin();
}

/// Places blocks one after the other. A block avoids the intervals placed before it that its parts overlap in time.
/// Gives up, without offsets, where the arena takes more than `most` bytes.
MemoryPlan PlaceInOrder(const std::vector<LiveInterval>& intervals, const std::vector<Block>& blocks,
                        const std::vector<std::size_t>& order, Fit fit, std::size_t most) {
  assert(order.size() == blocks.size() && "the order names every block");
  MemoryPlan plan;
  plan.offsets.resize(intervals.size(), 0);
  Placed placed;
  for (std::size_t index : order) {
    const RigidIntervals& parts = blocks[index].parts;
    const bool is_alone = parts.intervals.size() == 1 && parts.distances.front() == 0;
    const std::size_t offset = is_alone ? placed.FindGap(intervals[parts.intervals.front()], fit)
                                        : FindGapOfSet(intervals, parts, placed, fit);
    for (std::size_t i = 0; i < parts.intervals.size(); ++i) {
      const std::size_t interval = parts.intervals[i];
      const std::size_t bytes = PaddedBytes(intervals[interval]);
      if (bytes == 0) continue;
      plan.offsets[interval] = offset + parts.distances[i];
      assert(plan.offsets[interval] % AlignedBuffer::kAlignment == 0);
      plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[interval] + bytes);
      placed.Add(intervals[interval], plan.offsets[interval]);
    }
    if (plan.arena_bytes > most) return {{}, kAnyBytes, 0};
  }
  return plan;
}

/// Indices of the blocks, the largest first. Among equals the one that ends last comes first, then the earlier one.
std::vector<std::size_t> LargestFirst(const std::vector<Block>& blocks) {
  std::vector<std::size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(blocks[a].bytes, blocks[a].last) > std::pair(blocks[b].bytes, blocks[b].last);
  });
  return order;
}

std::size_t Length(const Block& block) { return block.last - block.first; }
std::size_t End(const Block& block) { return block.last; }

/// `order` with the blocks that are live at the peak in front, those of the greatest `rank` first.
std::vector<std::size_t> PeakFirst(const std::vector<Block>& blocks, std::size_t peak, std::vector<std::size_t> order,
                                   std::size_t (*rank)(const Block&)) {
  assert(order.size() == blocks.size() && "the order names every block");
  const auto key = [&](std::size_t index) {
    const Block& block = blocks[index];
    return block.first <= peak && peak <= block.last ? rank(block) + 1 : 0;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
  return order;
}

/// The orders in which blocks are placed. Where there are rigid sets, each order is also tried with these in front and
/// with these behind.
std::vector<std::vector<std::size_t>> Orders(const std::vector<Block>& blocks, std::size_t peak) {
  const std::vector<std::size_t> largest_first = LargestFirst(blocks);
  std::vector<std::vector<std::size_t>> orders = {largest_first, PeakFirst(blocks, peak, largest_first, Length),
                                                  PeakFirst(blocks, peak, largest_first, End)};
  const auto is_rigid = [&](std::size_t index) { return blocks[index].parts.intervals.size() > 1; };
  if (std::none_of(largest_first.begin(), largest_first.end(), is_rigid)) return orders;
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<std::size_t> in_front = orders[i];
    std::stable_partition(in_front.begin(), in_front.end(), is_rigid);
    std::vector<std::size_t> behind = orders[i];
    std::stable_partition(behind.begin(), behind.end(), std::not_fn(is_rigid));
    orders.push_back(std::move(in_front));
    orders.push_back(std::move(behind));
  }
  return orders;
}

}  // namespace

MemoryPlan PlanMemory(const std::vector<LiveInterval>& intervals, const std::vector<RigidIntervals>& rigid,
                      std::size_t most) {
  const Peak peak = FindPeak(intervals);
  MemoryPlan best;
  best.arena_bytes = kAnyBytes;
  best.lower_bound = peak.bytes;
  if (peak.bytes > most) return best;
  const std::vector<Block> blocks = BlocksOf(intervals, rigid);
  for (const std::vector<std::size_t>& order : Orders(blocks, peak.time)) {
    for (Fit fit : {Fit::kSmallest, Fit::kLowest}) {
      if (best.arena_bytes == peak.bytes) return best;
      MemoryPlan plan = PlaceInOrder(intervals, blocks, order, fit, std::min(most, best.arena_bytes - 1));
      if (plan.arena_bytes >= best.arena_bytes) continue;
      assert(plan.arena_bytes >= peak.bytes && "no plan is smaller than the lower bound");
      best = std::move(plan);
      best.lower_bound = peak.bytes;
    }
  }
  return best;
}

}  // namespace mpc::runtime
