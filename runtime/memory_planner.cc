#include "runtime/memory_planner.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/aligned_buffer.h"

namespace mpc::runtime {
namespace {

std::size_t PaddedBytes(const LiveInterval& interval) {
  return interval.bytes == 0 ? 0 : AlignedBuffer::Padded(interval.bytes);
}

bool OverlapInTime(const LiveInterval& a, const LiveInterval& b) { return a.first <= b.last && b.first <= a.last; }

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
    while (intervals[ends[ended]].last < intervals[begin].first) live -= PaddedBytes(intervals[ends[ended++]]);
    live += PaddedBytes(intervals[begin]);
    if (live > peak.bytes) peak = {live, intervals[begin].first};
  }
  return peak;
}

/// The placed intervals that are live together with the one being placed, by offset.
struct Occupied {
  std::size_t begin;
  std::size_t end;
};

/// Which gap an interval takes.
enum class Fit { kSmallest, kLowest };

/// Start of the smallest or the lowest gap that holds `bytes`, the lowest among equals; the end of what is occupied if
/// none does.
std::size_t FindGap(const std::vector<Occupied>& occupied, std::size_t bytes, Fit fit) {
  std::size_t cursor = 0;
  std::size_t best_offset = 0;
  std::size_t best_gap = 0;
  bool found = false;
  for (const Occupied& block : occupied) {
    if (block.begin > cursor) {
      const std::size_t gap = block.begin - cursor;
      if (gap >= bytes && (!found || (fit == Fit::kSmallest && gap < best_gap))) {
        found = true;
        best_gap = gap;
        best_offset = cursor;
      }
    }
    cursor = std::max(cursor, block.end);
  }
  return found ? best_offset : cursor;
}

/// Places intervals one after the other, each among those placed before it that it overlaps in time.
MemoryPlan PlaceInOrder(const std::vector<LiveInterval>& intervals, const std::vector<std::size_t>& order, Fit fit) {
  MemoryPlan plan;
  plan.offsets.resize(intervals.size(), 0);
  std::vector<std::size_t> placed;
  std::vector<Occupied> occupied;
  for (std::size_t index : order) {
    const LiveInterval& interval = intervals[index];
    const std::size_t bytes = PaddedBytes(interval);
    if (bytes == 0) continue;
    occupied.clear();
    for (std::size_t other : placed) {
      if (OverlapInTime(interval, intervals[other])) {
        occupied.push_back({plan.offsets[other], plan.offsets[other] + PaddedBytes(intervals[other])});
      }
    }
    std::sort(occupied.begin(), occupied.end(), [](const Occupied& a, const Occupied& b) { return a.begin < b.begin; });
    plan.offsets[index] = FindGap(occupied, bytes, fit);
    plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[index] + bytes);
    placed.push_back(index);
  }
  return plan;
}

/// Indices of the intervals, the largest first, among equals the one that stays longest, then the earlier one.
std::vector<std::size_t> LargestFirst(const std::vector<LiveInterval>& intervals) {
  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(PaddedBytes(intervals[a]), intervals[a].last) >
           std::pair(PaddedBytes(intervals[b]), intervals[b].last);
  });
  return order;
}

std::size_t Length(const LiveInterval& interval) { return interval.last - interval.first; }
std::size_t End(const LiveInterval& interval) { return interval.last; }

/// What is live at the peak, by `rank` from the greatest, then the rest.
std::vector<std::size_t> PeakFirst(const std::vector<LiveInterval>& intervals, std::size_t peak,
                                   std::size_t (*rank)(const LiveInterval&)) {
  std::vector<std::size_t> order = LargestFirst(intervals);
  const auto key = [&](std::size_t index) {
    const LiveInterval& interval = intervals[index];
    return interval.first <= peak && peak <= interval.last ? rank(interval) + 1 : 0;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) > key(b); });
  return order;
}

}  // namespace

MemoryPlan PlanMemory(const std::vector<LiveInterval>& intervals) {
  const Peak peak = FindPeak(intervals);
  const std::vector<std::size_t> largest_first = LargestFirst(intervals);
  MemoryPlan best = PlaceInOrder(intervals, largest_first, Fit::kSmallest);
  const auto keep_smaller = [&](const std::vector<std::size_t>& order, Fit fit) {
    if (best.arena_bytes == peak.bytes) return;
    MemoryPlan other = PlaceInOrder(intervals, order, fit);
    if (other.arena_bytes < best.arena_bytes) best = std::move(other);
  };
  keep_smaller(largest_first, Fit::kLowest);
  keep_smaller(PeakFirst(intervals, peak.time, Length), Fit::kLowest);
  keep_smaller(PeakFirst(intervals, peak.time, End), Fit::kLowest);
  best.lower_bound = peak.bytes;
  return best;
}

}  // namespace mpc::runtime
