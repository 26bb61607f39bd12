#include "runtime/memory_planner.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>
#include <utility>

#include "runtime/aligned_buffer.h"
#include "runtime/occupied_memory.h"

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

/// An interval in the counts that a search needs. Times are the instructions at which some interval begins, counted
/// from 0: two lives meet at one of them or never.
struct Life {
  std::size_t bytes = 0;  ///< padded
  std::size_t first = 0;  ///< time
  std::size_t last = 0;   ///< time
};

/// The lives of all intervals, and how many times there are.
struct Lives {
  std::vector<Life> all;
  std::size_t times = 0;
};

Lives LivesOf(const std::vector<LiveInterval>& intervals) {
  std::vector<std::size_t> begins;
  for (const LiveInterval& interval : intervals) begins.push_back(interval.first);
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  // The last time at or before an instruction. The interval itself begins there or earlier.
  const auto time_of = [&](std::size_t instruction) -> std::size_t {
    return std::upper_bound(begins.begin(), begins.end(), instruction) - begins.begin() - 1;
  };
  Lives lives{{}, begins.size()};
  for (const LiveInterval& interval : intervals) {
    lives.all.push_back({PaddedBytes(interval), time_of(interval.first), time_of(interval.last)});
  }
  return lives;
}

/// The intervals that have a place already.
class Placed {
 public:
  explicit Placed(const Lives& lives) : lives_(lives), memory_(lives.times) {}

  void Add(std::size_t interval, std::size_t offset) {
    const Life& life = lives_.all[interval];
    memory_.Add(life.first, life.last, {offset, offset + life.bytes});
  }

  /// Where the first byte of a block lies.
  std::size_t FindGap(const RigidIntervals& parts, Fit fit) {
    forbidden_.clear();
    for (std::size_t i = 0; i < parts.intervals.size(); ++i) {
      const Life& part = lives_.all[parts.intervals[i]];
      if (part.bytes > 0) AddForbidden(part, parts.distances[i]);
    }
    if (parts.intervals.size() > 1) {
      std::sort(forbidden_.begin(), forbidden_.end(),
                [](const Forbidden& a, const Forbidden& b) { return a.above < b.above; });
    }
    GapSearch search(fit);
    for (const Forbidden& range : forbidden_) {
      if (search.Pass(range)) break;
    }
    return search.Begin();
  }

 private:
  /// Adds the ranges where a block cannot begin. `part` is the part of the block that lies `distance` bytes behind its
  /// beginning. The added ranges are sorted.
  void AddForbidden(const Life& part, std::size_t distance) {
    const auto begin = static_cast<std::ptrdiff_t>(distance);
    const auto end = begin + static_cast<std::ptrdiff_t>(part.bytes);
    memory_.FindTaken(part.first, part.last, taken_);
    for (const AddressRange& range : taken_) {
      const auto above = static_cast<std::ptrdiff_t>(range.begin) - end;
      const auto below = static_cast<std::ptrdiff_t>(range.end) - begin;
      if (below > 0) forbidden_.push_back({above, below});
    }
  }

  const Lives& lives_;
  OccupiedMemory memory_;
  // Both are of the last search. They are members so that their memory serves the next one.
  std::vector<Forbidden> forbidden_;
  std::vector<AddressRange> taken_;
};

/// Places blocks one after the other. A block avoids the intervals placed before it that its parts overlap in time.
/// Gives up, without offsets, where the arena takes more than `most` bytes.
MemoryPlan PlaceInOrder(const Lives& lives, const std::vector<Block>& blocks, const std::vector<std::size_t>& order,
                        Fit fit, std::size_t most) {
  assert(order.size() == blocks.size() && "the order names every block");
  MemoryPlan plan;
  plan.offsets.resize(lives.all.size(), 0);
  Placed placed(lives);
  for (std::size_t index : order) {
    const RigidIntervals& parts = blocks[index].parts;
    const std::size_t offset = placed.FindGap(parts, fit);
    for (std::size_t i = 0; i < parts.intervals.size(); ++i) {
      const std::size_t interval = parts.intervals[i];
      const std::size_t bytes = lives.all[interval].bytes;
      if (bytes == 0) continue;
      plan.offsets[interval] = offset + parts.distances[i];
      assert(plan.offsets[interval] % AlignedBuffer::kAlignment == 0);
      plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[interval] + bytes);
      placed.Add(interval, plan.offsets[interval]);
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
  const Lives lives = LivesOf(intervals);
  for (const std::vector<std::size_t>& order : Orders(blocks, peak.time)) {
    for (Fit fit : {Fit::kSmallest, Fit::kLowest}) {
      if (best.arena_bytes == peak.bytes) return best;
      MemoryPlan plan = PlaceInOrder(lives, blocks, order, fit, std::min(most, best.arena_bytes - 1));
      if (plan.arena_bytes >= best.arena_bytes) continue;
      assert(plan.arena_bytes >= peak.bytes && "no plan is smaller than the lower bound");
      best = std::move(plan);
      best.lower_bound = peak.bytes;
    }
  }
  return best;
}

}  // namespace mpc::runtime
