// The minimum cut against brute force, and on graphs whose answer is known.
#include "passes/precision/precision_cut.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace mpc {
namespace {

using Pin = PrecisionCut::Pin;

struct RandomValue {
  unsigned producer;
  std::vector<unsigned> consumers;
  std::int64_t weight;
};

struct RandomGraph {
  std::vector<Pin> pins;
  std::vector<std::int64_t> gains;
  std::vector<RandomValue> values;
};

RandomGraph MakeGraph(std::mt19937& engine) {
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine); };
  RandomGraph graph;
  const int slots = draw(1, 12);
  const bool with_gains = draw(0, 1) == 1;
  for (int slot = 0; slot < slots; ++slot) {
    constexpr std::array<Pin, 4> kPins = {Pin::None, Pin::None, Pin::Low, Pin::F32};
    graph.pins.push_back(kPins.at(static_cast<std::size_t>(draw(0, 3))));
    graph.gains.push_back(with_gains && draw(0, 2) == 0 ? draw(-6, 6) : 0);
  }
  for (int value = draw(0, 16); value > 0; --value) {
    RandomValue entry = {static_cast<unsigned>(draw(0, slots - 1)), {}, draw(0, 5)};
    for (int consumer = draw(0, 4); consumer > 0; --consumer) {
      entry.consumers.push_back(static_cast<unsigned>(draw(0, slots - 1)));
    }
    graph.values.push_back(entry);
  }
  return graph;
}

/// The cost of an assignment, bit i of `low` being slot i; nullopt where it breaks a pin.
std::optional<std::int64_t> Cost(const RandomGraph& graph, unsigned low) {
  const auto is_low = [&](unsigned slot) { return (low >> slot & 1U) != 0; };
  std::int64_t cost = 0;
  for (unsigned slot = 0; slot < graph.pins.size(); ++slot) {
    if (graph.pins[slot] == (is_low(slot) ? Pin::F32 : Pin::Low)) return std::nullopt;
    if (!is_low(slot) && graph.gains[slot] > 0) cost += graph.gains[slot];
    if (is_low(slot) && graph.gains[slot] < 0) cost -= graph.gains[slot];
  }
  for (const RandomValue& value : graph.values) {
    bool other = false;
    for (const unsigned consumer : value.consumers) other |= is_low(consumer) != is_low(value.producer);
    if (other) cost += value.weight;
  }
  return cost;
}

TEST(PrecisionCut, EqualsBruteForceOnRandomGraphsAndTakesTheMaximalLowSide) {
  std::mt19937 engine(20);
  for (int round = 0; round < 2000; ++round) {
    const RandomGraph graph = MakeGraph(engine);
    std::int64_t optimum = INT64_MAX;
    unsigned maximal = 0;
    for (unsigned low = 0; low < 1U << graph.pins.size(); ++low) {
      const std::optional<std::int64_t> cost = Cost(graph, low);
      if (!cost.has_value() || *cost > optimum) continue;
      // Optimal low sides are closed under union.
      maximal = *cost < optimum ? low : maximal | low;
      optimum = *cost;
    }
    PrecisionCut cut;
    for (std::size_t slot = 0; slot < graph.pins.size(); ++slot) cut.addNode(graph.pins[slot], graph.gains[slot]);
    for (const RandomValue& value : graph.values) cut.addValue(value.producer, value.consumers, value.weight);
    ASSERT_TRUE(cut.solve());
    unsigned low = 0;
    for (unsigned slot = 0; slot < cut.numNodes(); ++slot) low |= static_cast<unsigned>(cut.isLow(slot)) << slot;
    ASSERT_EQ(cut.getCost(), optimum) << "round " << round;
    ASSERT_EQ(low, maximal) << "round " << round;
    ASSERT_EQ(Cost(graph, low), optimum) << "round " << round;
  }
}

/// A chain with one value of the given weight between neighbours.
PrecisionCut Chain(const std::vector<Pin>& pins, const std::vector<std::int64_t>& weights) {
  PrecisionCut cut;
  for (const Pin pin : pins) cut.addNode(pin);
  for (unsigned i = 0; i < weights.size(); ++i) cut.addValue(i, std::array{i + 1}, weights[i]);
  EXPECT_TRUE(cut.solve());
  return cut;
}

TEST(PrecisionCut, ChainIsCastAtItsSmallestValue) {
  const PrecisionCut cut = Chain({Pin::Low, Pin::None, Pin::None, Pin::F32}, {4, 1, 3});
  EXPECT_EQ(cut.getCost(), 1);
  EXPECT_TRUE(cut.isLow(1));
  EXPECT_FALSE(cut.isLow(2));
}

TEST(PrecisionCut, TieGoesToLow) {
  const PrecisionCut after_low = Chain({Pin::Low, Pin::None, Pin::F32}, {2, 2});
  EXPECT_TRUE(after_low.isLow(1));
  const PrecisionCut before_low = Chain({Pin::F32, Pin::None, Pin::Low}, {2, 2});
  EXPECT_TRUE(before_low.isLow(1));
  EXPECT_EQ(before_low.getCost(), 2);
}

TEST(PrecisionCut, NodeThatNothingPinsIsLow) {
  const PrecisionCut cut = Chain({Pin::None, Pin::None}, {7});
  EXPECT_TRUE(cut.isLow(0));
  EXPECT_TRUE(cut.isLow(1));
  EXPECT_EQ(cut.getCost(), 0);
}

TEST(PrecisionCut, ValueWithSeveralUsersIsCastOnce) {
  PrecisionCut cut;
  const unsigned producer = cut.addNode(Pin::Low);
  std::vector<unsigned> users;
  for (int i = 0; i < 3; ++i) users.push_back(cut.addNode(Pin::F32));
  cut.addValue(producer, users, 5);
  ASSERT_TRUE(cut.solve());
  EXPECT_EQ(cut.getCost(), 5);
}

TEST(PrecisionCut, DiamondBetweenLowNeighboursStaysLow) {
  PrecisionCut cut;
  const unsigned top = cut.addNode(Pin::Low), left = cut.addNode(), right = cut.addNode(Pin::F32);
  const unsigned join = cut.addNode(), bottom = cut.addNode(Pin::Low);
  cut.addValue(top, std::array{left, right}, 4);
  cut.addValue(left, std::array{join}, 4);
  cut.addValue(right, std::array{join}, 4);
  cut.addValue(join, std::array{bottom}, 4);
  ASSERT_TRUE(cut.solve());
  EXPECT_EQ(cut.getCost(), 8) << "into and out of the f32 side";
  EXPECT_TRUE(cut.isLow(left));
  EXPECT_TRUE(cut.isLow(join));
}

TEST(PrecisionCut, LowCopyOfAParameterCostsItsElementsOnce) {
  PrecisionCut cut;
  const unsigned parameter = cut.addNode(Pin::F32), first = cut.addNode(Pin::Low), second = cut.addNode(Pin::Low);
  cut.addValue(parameter, std::array{first, second}, 100);
  ASSERT_TRUE(cut.solve());
  EXPECT_EQ(cut.getCost(), 100);
}

TEST(PrecisionCut, GainBelowItsCastsIsNotTaken) {
  for (const std::int64_t gain : {3, 5, 9, -1}) {
    PrecisionCut cut;
    const unsigned input = cut.addNode(Pin::F32), work = cut.addNode(Pin::None, gain), output = cut.addNode(Pin::F32);
    cut.addValue(input, std::array{work}, 2);
    cut.addValue(work, std::array{output}, 3);
    ASSERT_TRUE(cut.solve());
    EXPECT_EQ(cut.isLow(work), gain >= 5) << gain << ", a tie goes to low";
    EXPECT_EQ(cut.getCost(), gain < 0 ? 0 : std::min<std::int64_t>(gain, 5)) << gain;
  }
}

TEST(PrecisionCut, ValueThatItsProducerReadsCostsNothing) {
  PrecisionCut cut;
  const unsigned slot = cut.addNode(Pin::Low);
  cut.addValue(slot, std::array{slot, slot}, 9);
  ASSERT_TRUE(cut.solve());
  EXPECT_EQ(cut.getCost(), 0);
}

TEST(PrecisionCut, CostsThatAddUpToTheLimitAreRefused) {
  constexpr std::int64_t kLimit = PrecisionCut::costLimit;
  const auto solves = [](std::int64_t weight, std::int64_t gain) {
    PrecisionCut cut;
    const unsigned low = cut.addNode(Pin::Low), work = cut.addNode(Pin::None, gain), f32 = cut.addNode(Pin::F32);
    cut.addValue(low, std::array{work}, weight);
    cut.addValue(work, std::array{f32}, 1);
    if (!cut.solve()) return false;
    EXPECT_EQ(cut.getCost(), 1 + std::max<std::int64_t>(-gain, 0)) << "the largest sum that is taken keeps its optimum";
    return true;
  };
  EXPECT_TRUE(solves(kLimit - 2, 0));
  EXPECT_FALSE(solves(kLimit - 1, 0));
  EXPECT_TRUE(solves(kLimit / 2 + 2, kLimit / 2 - 4));
  EXPECT_FALSE(solves(kLimit / 2 + 2, kLimit / 2 - 3));
  EXPECT_FALSE(solves(kLimit / 2 + 2, -(kLimit / 2 - 3)));
  EXPECT_FALSE(solves(INT64_MAX, 0));
  EXPECT_FALSE(solves(0, INT64_MAX));
  EXPECT_FALSE(solves(0, INT64_MIN));
}

TEST(PrecisionCut, HundredThousandNodesTakeLessThanTenSeconds) {
  // A residual network: blocks of a pinned and a free slot with a skip, an f32 slot every 64th block.
  PrecisionCut cut;
  unsigned stream = cut.addNode(Pin::F32);
  for (int block = 0; block < 33333; ++block) {
    const unsigned work = cut.addNode(block % 64 == 63 ? Pin::F32 : Pin::Low), free = cut.addNode(),
                   sum = cut.addNode();
    cut.addValue(stream, std::array{work, sum}, 1 + block % 7);
    cut.addValue(work, std::array{free}, 1 + block % 5);
    cut.addValue(free, std::array{sum}, 1 + block % 3);
    stream = sum;
  }
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(cut.solve());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_GT(cut.getCost(), 0);
}

}  // namespace
}  // namespace mpc
