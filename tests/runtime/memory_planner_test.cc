#include "runtime/memory_planner.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>

namespace mpc::runtime {
namespace {

std::vector<LiveInterval> RandomIntervals(unsigned seed, std::size_t count) {
  std::mt19937 random(seed);
  std::vector<LiveInterval> intervals(count);
  for (LiveInterval& interval : intervals) {
    interval.bytes = random() % 5000;
    interval.first = random() % 40;
    interval.last = interval.first + random() % 10;
  }
  return intervals;
}

void ExpectNoOverlap(const std::vector<LiveInterval>& intervals, const MemoryPlan& plan, unsigned seed) {
  for (std::size_t a = 0; a < intervals.size(); ++a) {
    EXPECT_EQ(plan.offsets[a] % 64, 0u);
    EXPECT_LE(plan.offsets[a] + intervals[a].bytes, plan.arena_bytes);
    for (std::size_t b = 0; b < a; ++b) {
      const bool in_time = intervals[a].first <= intervals[b].last && intervals[b].first <= intervals[a].last;
      const bool in_memory = plan.offsets[a] < plan.offsets[b] + intervals[b].bytes &&
                             plan.offsets[b] < plan.offsets[a] + intervals[a].bytes;
      EXPECT_FALSE(in_time && in_memory) << "seed " << seed << ", intervals " << a << " and " << b;
    }
  }
}

TEST(MemoryPlanner, IntervalsThatOverlapInTimeNeverOverlapInMemory) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<LiveInterval> intervals = RandomIntervals(seed, 120);
    const MemoryPlan plan = PlanMemory(intervals);
    ASSERT_EQ(plan.offsets.size(), intervals.size());
    ExpectNoOverlap(intervals, plan, seed);
  }
}

/// Every fifth interval, with gaps of up to two lines between them.
RigidIntervals EveryFifth(const std::vector<LiveInterval>& intervals, unsigned seed) {
  std::mt19937 random(seed);
  RigidIntervals set;
  std::size_t end = 0;
  for (std::size_t i = 0; i < intervals.size(); i += 5) {
    set.intervals.push_back(i);
    set.distances.push_back(end);
    end += (intervals[i].bytes + 63) / 64 * 64 + 64 * (random() % 3);
  }
  return set;
}

TEST(MemoryPlanner, IntervalsOfARigidSetKeepTheirDistancesAndOverlapNothing) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<LiveInterval> intervals = RandomIntervals(seed, 120);
    for (LiveInterval& interval : intervals) interval.bytes += 1;
    const RigidIntervals set = EveryFifth(intervals, seed);
    const MemoryPlan plan = PlanMemory(intervals, {set});
    const std::size_t begin = plan.offsets[set.intervals[0]];
    for (std::size_t i = 0; i < set.intervals.size(); ++i) {
      EXPECT_EQ(plan.offsets[set.intervals[i]], begin + set.distances[i]);
    }
    ExpectNoOverlap(intervals, plan, seed);
    EXPECT_EQ(plan.lower_bound, PlanMemory(intervals).lower_bound);
    EXPECT_GE(plan.arena_bytes, plan.lower_bound);
  }
}

TEST(MemoryPlanner, OthersLieInARigidSetBeforeAndAfterItsIntervalsLive) {
  // The set takes 1024 bytes, the second half from 5 on. Until then another 512 bytes lie there.
  const std::vector<LiveInterval> intervals = {{512, 2, 9}, {512, 5, 9}, {512, 0, 4}};
  const MemoryPlan plan = PlanMemory(intervals, {{{0, 1}, {0, 512}}});
  EXPECT_EQ(plan.arena_bytes, 1024u);
  EXPECT_EQ(plan.offsets[1], plan.offsets[0] + 512);
  EXPECT_EQ(plan.offsets[2], plan.offsets[1]);
}

TEST(MemoryPlanner, SetsThatHoldNothingChangeNothing) {
  const std::vector<LiveInterval> intervals = RandomIntervals(3, 50);
  const MemoryPlan plan = PlanMemory(intervals, {{}, {{7}, {0}}});
  EXPECT_EQ(plan.offsets, PlanMemory(intervals).offsets);
  EXPECT_EQ(PlanMemory({{0, 0, 5}}, {{{0}, {0}}}).arena_bytes, 0u);
}

TEST(MemoryPlanner, ArenaLiesBetweenTheLowerBoundAndTheSumOfAllIntervals) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::vector<LiveInterval> intervals = RandomIntervals(seed, 120);
    const MemoryPlan plan = PlanMemory(intervals);
    std::size_t largest = 0;
    for (std::size_t time = 0; time < 50; ++time) {
      std::size_t live = 0;
      for (const LiveInterval& interval : intervals) {
        if (interval.first <= time && time <= interval.last) live += (interval.bytes + 63) / 64 * 64;
      }
      largest = std::max(largest, live);
    }
    EXPECT_EQ(plan.lower_bound, largest);
    EXPECT_GE(plan.arena_bytes, plan.lower_bound);
    // Packing by size is known to stay near the bound; twice the bound would mean that gaps are not reused.
    EXPECT_LT(plan.arena_bytes, 2 * plan.lower_bound);
  }
}

TEST(MemoryPlanner, EqualIntervalsGiveEqualPlans) {
  const std::vector<LiveInterval> intervals = RandomIntervals(7, 200);
  const MemoryPlan first = PlanMemory(intervals);
  const MemoryPlan second = PlanMemory(intervals);
  EXPECT_EQ(first.offsets, second.offsets);
  EXPECT_EQ(first.arena_bytes, second.arena_bytes);
}

/// FNV-1a of `numbers`, byte by byte.
std::uint64_t Fingerprint(const std::vector<std::size_t>& numbers) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::size_t number : numbers) {
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (number >> (8 * byte) & 0xff)) * 0x100000001b3u;
  }
  return hash;
}

TEST(MemoryPlanner, PlansAreThoseOfThePlainSearch) {
  // Of a planner that looks at every placed interval for every block, and finishes every order.
  std::vector<std::size_t> loose, rigid;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<LiveInterval> intervals = RandomIntervals(seed, 150);
    const MemoryPlan plan = PlanMemory(intervals);
    loose.insert(loose.end(), plan.offsets.begin(), plan.offsets.end());
    const MemoryPlan with_set = PlanMemory(intervals, {EveryFifth(intervals, seed)});
    rigid.insert(rigid.end(), with_set.offsets.begin(), with_set.offsets.end());
  }
  EXPECT_EQ(Fingerprint(loose), 0x80c95d473aee82e3u);
  EXPECT_EQ(Fingerprint(rigid), 0x9eb5406f16266a16u);
}

/// A training step: values that the backward pass reads, the last one first, temporaries, and gradients that the
/// optimizer reads at the end.
std::vector<LiveInterval> TrainingIntervals(std::size_t layers) {
  std::mt19937 random(5);
  std::vector<LiveInterval> intervals;
  const std::size_t end = 4 * layers;
  for (std::size_t i = 0; i < layers; ++i) {
    const std::size_t backward = end - 2 * i - 2;
    intervals.push_back({1 + random() % 5000, 2 * i, backward + 1});
    intervals.push_back({1 + random() % 5000, 2 * i, 2 * i + 1 + random() % 3});
    intervals.push_back({1 + random() % 5000, backward, backward + 2});
    intervals.push_back({1 + random() % 500, backward, end + 1});
  }
  return intervals;
}

TEST(MemoryPlanner, PlansOfManyLayersAreThoseOfThePlainSearch) {
  const std::vector<LiveInterval> intervals = TrainingIntervals(800);
  RigidIntervals gradients;
  std::size_t end = 0;
  for (std::size_t i = 3; i < intervals.size(); i += 4) {
    gradients.intervals.push_back(i);
    gradients.distances.push_back(end);
    end += (intervals[i].bytes + 63) / 64 * 64;
  }
  EXPECT_EQ(Fingerprint(PlanMemory(intervals).offsets), 0x757ed5a997cadffu);
  EXPECT_EQ(Fingerprint(PlanMemory(intervals, {gradients}).offsets), 0x868aebb4e3417072u);
}

TEST(MemoryPlanner, TakesLivesOfAnyLength) {
  // Two lives that never end, and two that meet none of each other.
  constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  const MemoryPlan plan = PlanMemory({{64, 0, kNever}, {64, kNever, kNever}, {64, 5, 7}, {64, 8, 1'000'000'000'000}});
  EXPECT_EQ(plan.arena_bytes, 128u);
}

TEST(MemoryPlanner, APlanOfMoreThanIsAskedForIsNone) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<LiveInterval> intervals = RandomIntervals(seed, 120);
    const MemoryPlan plan = PlanMemory(intervals);
    const MemoryPlan same = PlanMemory(intervals, {}, plan.arena_bytes);
    EXPECT_EQ(same.offsets, plan.offsets);
    const MemoryPlan none = PlanMemory(intervals, {}, plan.arena_bytes - 1);
    EXPECT_TRUE(none.offsets.empty());
    EXPECT_EQ(none.arena_bytes, kAnyBytes);
    EXPECT_EQ(none.lower_bound, plan.lower_bound);
  }
}

TEST(MemoryPlanner, AChainOfTemporariesNeedsTwoSlots) {
  std::vector<LiveInterval> chain;
  for (std::size_t i = 0; i < 10; ++i) chain.push_back({640, i, i + 1});
  const MemoryPlan plan = PlanMemory(chain);
  EXPECT_EQ(plan.arena_bytes, 1280u);
  EXPECT_EQ(plan.lower_bound, 1280u);
}

TEST(MemoryPlanner, TakesTheSmallestGapThatFits) {
  // Two blocks end at 2 and leave gaps of 640 and 320 bytes between three that stay; 256 bytes go into the smaller gap.
  const std::vector<LiveInterval> intervals = {{1024, 0, 9}, {640, 0, 2}, {512, 0, 9},
                                               {320, 0, 2},  {250, 0, 9}, {256, 3, 9}};
  const MemoryPlan plan = PlanMemory(intervals);
  EXPECT_EQ(plan.offsets[5], plan.offsets[3]);
}

TEST(MemoryPlanner, PlacesThePeakFirstWhereTheLargestFirstLeavesAHoleThere) {
  // The largest first puts the 64 bytes, which live through the peak at 5, above blocks that do not: 1024 bytes.
  const std::vector<LiveInterval> intervals = {{384, 2, 3}, {320, 3, 5}, {64, 1, 5},
                                               {320, 0, 1}, {256, 4, 5}, {320, 5, 6}};
  const MemoryPlan plan = PlanMemory(intervals);
  EXPECT_EQ(plan.lower_bound, 960u);
  EXPECT_EQ(plan.arena_bytes, 960u);
}

TEST(MemoryPlanner, PlacesWhatEndsLastOfThePeakFirstWhereItsLongestLeavesAHole) {
  // At the peak, 1, the second block of 384 bytes lives as long as the one of 64 that outlives it. Placed first, it
  // takes the bottom, and 64 bytes at 2, above 64 others, leave no room for the first block of 384.
  const std::vector<LiveInterval> intervals = {{64, 2, 5}, {384, 5, 8}, {384, 0, 1}, {64, 1, 2}};
  const MemoryPlan plan = PlanMemory(intervals);
  EXPECT_EQ(plan.lower_bound, 448u);
  EXPECT_EQ(plan.arena_bytes, 448u);
}

TEST(MemoryPlanner, NothingAndEmptyTensorsNeedNoMemory) {
  EXPECT_EQ(PlanMemory({}).arena_bytes, 0u);
  EXPECT_EQ(PlanMemory({{0, 0, 5}, {0, 2, 3}}).arena_bytes, 0u);
}

}  // namespace
}  // namespace mpc::runtime
