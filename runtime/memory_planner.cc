#include "runtime/memory_planner.h"

#include <algorithm>
#include <numeric>

#include "runtime/aligned_buffer.h"

namespace mpc::runtime {
namespace {

std::size_t PaddedBytes(const LiveInterval& interval) {
  return interval.bytes == 0 ? 0 : AlignedBuffer::Padded(interval.bytes);
}

bool OverlapInTime(const LiveInterval& a, const LiveInterval& b) { return a.first <= b.last && b.first <= a.last; }

/// The largest sum of padded bytes live at one instruction. It is reached where some interval begins.
std::size_t LargestLiveSum(const std::vector<LiveInterval>& intervals) {
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
  std::size_t largest = 0;
  std::size_t ended = 0;
  for (std::size_t begin : begins) {
    while (intervals[ends[ended]].last < intervals[begin].first) live -= PaddedBytes(intervals[ends[ended++]]);
    live += PaddedBytes(intervals[begin]);
    largest = std::max(largest, live);
  }
  return largest;
}

/// The placed intervals that are live together with the one being placed, by offset.
struct Occupied {
  std::size_t begin;
  std::size_t end;
};

/// Start of the smallest gap that holds `bytes`, the lowest among equals; the end of what is occupied if none does.
std::size_t BestFit(const std::vector<Occupied>& occupied, std::size_t bytes) {
  std::size_t cursor = 0;
  std::size_t best_offset = 0;
  std::size_t best_gap = 0;
  bool found = false;
  for (const Occupied& block : occupied) {
    if (block.begin > cursor) {
      const std::size_t gap = block.begin - cursor;
      if (gap >= bytes && (!found || gap < best_gap)) {
        found = true;
        best_gap = gap;
        best_offset = cursor;
      }
    }
    cursor = std::max(cursor, block.end);
  }
  return found ? best_offset : cursor;
}

}  // namespace

MemoryPlan PlanMemory(const std::vector<LiveInterval>& intervals) {
  MemoryPlan plan;
  plan.offsets.resize(intervals.size(), 0);
  plan.lower_bound = LargestLiveSum(intervals);

  std::vector<std::size_t> order(intervals.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return PaddedBytes(intervals[a]) > PaddedBytes(intervals[b]); });

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
    plan.offsets[index] = BestFit(occupied, bytes);
    plan.arena_bytes = std::max(plan.arena_bytes, plan.offsets[index] + bytes);
    placed.push_back(index);
  }
  return plan;
}

}  // namespace mpc::runtime
