// Which calls may run at once: what conflicts stays in order, the rest need not.
#include "runtime/cuda/branch_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace mpc::runtime {
namespace {

const std::array<std::byte, 256> kMemory = {};

MemoryRange Bytes(std::size_t begin, std::size_t end) { return {&kMemory[begin], &kMemory[end]}; }

/// For each call the calls that have ended when it begins.
std::vector<std::vector<bool>> EndedBefore(const std::vector<BranchPlace>& places) {
  std::vector<std::vector<bool>> ended;
  for (std::size_t call = 0; call < places.size(); ++call) {
    std::vector<bool>& before = ended.emplace_back(places.size());
    const auto add = [&](std::size_t earlier) {
      for (std::size_t i = 0; i < earlier; ++i) before[i] = before[i] || ended[earlier][i];
      before[earlier] = true;
    };
    for (const std::size_t earlier : places[call].awaits) {
      EXPECT_LT(earlier, call);
      EXPECT_NE(places[earlier].branch, places[call].branch) << "a branch keeps its own order";
      add(earlier);
    }
    for (std::size_t i = 0; i < call; ++i) {
      if (places[i].branch == places[call].branch) add(i);
    }
  }
  return ended;
}

TEST(BranchPlan, AChainStaysOnOneBranch) {
  std::vector<CallMemory> calls;
  for (std::size_t i = 0; i < 5; ++i) calls.push_back({{Bytes(8 * i, 8 * i + 8)}, {Bytes(8 * i + 8, 8 * i + 16)}});
  for (const BranchPlace& place : PlanBranches(calls, 4)) {
    EXPECT_EQ(place.branch, 0u);
    EXPECT_TRUE(place.awaits.empty());
  }
}

TEST(BranchPlan, WeightGradientsRunBesideTheChainOfDataGradients) {
  // Each layer reads the gradient of its result and writes those of its data and of its weight; at the end all weights'
  // gradients are read.
  const std::size_t layers = 3;
  std::vector<CallMemory> calls;
  CallMemory update;
  for (std::size_t i = 0; i < layers; ++i) {
    const MemoryRange of_result = Bytes(8 * i, 8 * i + 8), of_data = Bytes(8 * i + 8, 8 * i + 16);
    const MemoryRange of_weight = Bytes(128 + 8 * i, 136 + 8 * i);
    calls.push_back({{of_result}, {of_data}});
    calls.push_back({{of_result}, {of_weight}});
    update.reads.push_back(of_weight);
  }
  calls.push_back(update);
  const std::vector<BranchPlace> places = PlanBranches(calls, 4);
  const std::vector<std::vector<bool>> ended = EndedBefore(places);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    EXPECT_EQ(places[2 * layer].branch, 0u);
    EXPECT_NE(places[2 * layer + 1].branch, 0u);
    EXPECT_TRUE(ended.back()[2 * layer + 1]);
    if (layer + 1 < layers) {
      EXPECT_FALSE(ended[2 * layer + 2][2 * layer + 1]) << "the next layer does not wait for a weight's gradient";
    }
  }
  for (const BranchPlace& place : PlanBranches(calls, 1)) EXPECT_EQ(place.branch, 0u);
}

TEST(BranchPlan, ACallThatRunsAloneSeparatesTheStep) {
  std::vector<CallMemory> calls(5);
  calls[2].alone = true;
  const std::vector<std::vector<bool>> ended = EndedBefore(PlanBranches(calls, 8));
  EXPECT_TRUE(ended[2][0] && ended[2][1] && ended[3][2] && ended[4][2]);
  EXPECT_FALSE(ended[1][0] || ended[4][3]);
}

TEST(BranchPlan, LargeCallsStayOnTheFirstBranch) {
  const std::vector<std::byte> large(kLargeCallBytes + 1);
  const MemoryRange whole = {large.data(), large.data() + large.size()};
  // Both gradients of a layer, and a small one beside them.
  const std::vector<CallMemory> calls = {{{whole}, {Bytes(0, 8)}},
                                         {{whole}, {Bytes(8, 16)}},
                                         {{Bytes(16, 24)}, {Bytes(24, 32)}},
                                         {{whole}, {Bytes(0, 8)}}};
  const std::vector<BranchPlace> places = PlanBranches(calls, 4);
  EXPECT_EQ(places[1].branch, 0u);
  EXPECT_EQ(places[2].branch, 1u);
  EXPECT_EQ(places[3].branch, 0u);
}

TEST(BranchPlan, RangesThatTouchDoNotOverlap) {
  const std::vector<CallMemory> calls = {
      {{}, {Bytes(0, 8)}}, {{}, {Bytes(8, 16)}}, {{Bytes(7, 8)}, {}}, {{}, {Bytes(3, 3)}}};
  const std::vector<std::vector<bool>> ended = EndedBefore(PlanBranches(calls, 8));
  EXPECT_FALSE(ended[1][0]);
  EXPECT_TRUE(ended[2][0]);
  EXPECT_FALSE(ended[3][0]) << "an empty range touches nothing";
}

TEST(BranchPlan, DrawnStepsKeepEveryOrderThatMemoryAsksFor) {
  std::mt19937 random(1);
  const auto draw = [&](std::size_t below) { return std::uniform_int_distribution<std::size_t>(0, below - 1)(random); };
  for (int step = 0; step < 200; ++step) {
    std::vector<CallMemory> calls(1 + draw(40));
    for (CallMemory& call : calls) {
      const auto range = [&] {
        const std::size_t begin = draw(240);
        return Bytes(begin, begin + draw(16));
      };
      for (std::size_t i = draw(4); i > 0; --i) call.reads.push_back(range());
      for (std::size_t i = draw(3); i > 0; --i) call.writes.push_back(range());
      call.alone = draw(20) == 0;
    }
    const std::size_t branches = 1 + draw(5);
    const std::vector<BranchPlace> places = PlanBranches(calls, branches);
    const std::vector<std::vector<bool>> ended = EndedBefore(places);
    const auto touches = [](const std::vector<MemoryRange>& a, const std::vector<MemoryRange>& b) {
      for (const MemoryRange& x : a) {
        for (const MemoryRange& y : b) {
          if (std::max(x.begin, y.begin) < std::min(x.end, y.end)) return true;
        }
      }
      return false;
    };
    for (std::size_t second = 0; second < calls.size(); ++second) {
      EXPECT_LT(places[second].branch, branches);
      for (std::size_t first = 0; first < second; ++first) {
        const CallMemory &a = calls[first], &b = calls[second];
        if (a.alone || b.alone || touches(a.writes, b.writes) || touches(a.writes, b.reads) ||
            touches(a.reads, b.writes)) {
          EXPECT_TRUE(ended[second][first]) << first << " and " << second << " of step " << step;
        }
      }
    }
  }
}

}  // namespace
}  // namespace mpc::runtime
