// The lower hull of time and error against brute force.
#include "passes/precision/precision_hull.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace mpc {
namespace {

using Pin = PrecisionCut::Pin;
using Point = std::pair<std::int64_t, std::int64_t>;  ///< time and error

struct RandomValue {
  unsigned producer;
  std::vector<unsigned> consumers;
  std::int64_t weight;
};

struct RandomError {
  std::vector<unsigned> nodes;
  std::int64_t size;
};

struct RandomGraph {
  std::vector<Pin> pins;
  std::vector<std::int64_t> gains;
  std::vector<RandomValue> values;
  std::vector<RandomError> errors;
};

RandomGraph MakeGraph(std::mt19937& engine) {
  const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine); };
  RandomGraph graph;
  const int slots = draw(2, 10);
  const auto some = [&](int most) {
    std::vector<unsigned> nodes;
    for (int node = draw(0, most); node > 0; --node) nodes.push_back(static_cast<unsigned>(draw(0, slots - 1)));
    return nodes;
  };
  for (int slot = 0; slot < slots; ++slot) {
    constexpr std::array<Pin, 6> kPins = {Pin::None, Pin::None, Pin::None, Pin::None, Pin::Low, Pin::F32};
    graph.pins.push_back(kPins.at(static_cast<std::size_t>(draw(0, 5))));
    graph.gains.push_back(draw(-3, 60));
  }
  for (int value = draw(0, 12); value > 0; --value) {
    graph.values.push_back({static_cast<unsigned>(draw(0, slots - 1)), some(3), draw(0, 8)});
  }
  for (int error = draw(4, 20); error > 0; --error) graph.errors.push_back({some(3), draw(0, 30)});
  return graph;
}

PrecisionCut CutOf(const RandomGraph& graph) {
  PrecisionCut cut;
  for (std::size_t slot = 0; slot < graph.pins.size(); ++slot) cut.addNode(graph.pins[slot], graph.gains[slot]);
  for (const RandomValue& value : graph.values) cut.addValue(value.producer, value.consumers, value.weight);
  for (const RandomError& error : graph.errors) cut.addError(error.nodes, error.size);
  return cut;
}

/// Bit i of `low` is slot i.
Point Costs(const RandomGraph& graph, unsigned low) {
  const auto is_low = [&](unsigned slot) { return (low >> slot & 1U) != 0; };
  Point costs{0, 0};
  for (unsigned slot = 0; slot < graph.pins.size(); ++slot) {
    if (!is_low(slot) && graph.gains[slot] > 0) costs.first += graph.gains[slot];
    if (is_low(slot) && graph.gains[slot] < 0) costs.first -= graph.gains[slot];
  }
  for (const RandomValue& value : graph.values) {
    const auto differs = [&](unsigned consumer) { return is_low(consumer) != is_low(value.producer); };
    if (std::any_of(value.consumers.begin(), value.consumers.end(), differs)) costs.first += value.weight;
  }
  for (const RandomError& error : graph.errors) {
    if (std::any_of(error.nodes.begin(), error.nodes.end(), is_low)) costs.second += error.size;
  }
  return costs;
}

std::vector<Point> AllPoints(const RandomGraph& graph) {
  std::vector<Point> points;
  for (unsigned low = 0; low < 1U << graph.pins.size(); ++low) {
    bool obeys = true;
    for (unsigned slot = 0; slot < graph.pins.size(); ++slot) {
      obeys &= graph.pins[slot] != ((low >> slot & 1U) != 0 ? Pin::F32 : Pin::Low);
    }
    if (obeys) points.push_back(Costs(graph, low));
  }
  return points;
}

/// The corners by Andrew's chain, the fastest first, each more exact than the one before.
std::vector<Point> BruteForceHull(std::vector<Point> points) {
  std::sort(points.begin(), points.end());
  std::vector<Point> hull;
  for (const Point& point : points) {
    if (!hull.empty() && point.second >= hull.back().second) continue;
    const auto is_above = [&] {
      const Point &a = hull[hull.size() - 2], &b = hull.back();
      return (b.first - a.first) * (point.second - a.second) - (b.second - a.second) * (point.first - a.first) <= 0;
    };
    while (hull.size() >= 2 && is_above()) hull.pop_back();
    hull.push_back(point);
  }
  return hull;
}

TEST(PrecisionHull, EqualsBruteForceOn300RandomGraphs) {
  std::mt19937 engine(24);
  std::size_t corners = 0;
  for (int round = 0; round < 300; ++round) {
    const RandomGraph graph = MakeGraph(engine);
    PrecisionCut cut = CutOf(graph);
    std::vector<Point> found;
    for (const HullPoint& point : findLowerHull(cut)) {
      unsigned low = 0;
      for (unsigned slot = 0; slot < point.low.size(); ++slot) low |= static_cast<unsigned>(point.low[slot]) << slot;
      ASSERT_EQ(Costs(graph, low), Point(point.time, point.error)) << "round " << round;
      found.emplace_back(point.time, point.error);
    }
    ASSERT_EQ(found, BruteForceHull(AllPoints(graph))) << "round " << round;
    corners += found.size();
  }
  EXPECT_GT(corners, 900U) << "graphs with more than the two ends";
}

TEST(PrecisionHull, CutIsTheLeastCostAtEveryPriceAndItsLowNodesAreNested) {
  std::mt19937 engine(25);
  for (int round = 0; round < 300; ++round) {
    const RandomGraph graph = MakeGraph(engine);
    const std::vector<Point> points = AllPoints(graph);
    PrecisionCut cut = CutOf(graph);
    std::vector<bool> before(graph.pins.size(), true);
    // Prices of an error, rising: 0, 1/12, ..., 12.
    for (const auto& [time, error] :
         std::vector<Point>{{1, 0}, {12, 1}, {5, 1}, {7, 3}, {1, 1}, {3, 7}, {1, 5}, {1, 12}}) {
      ASSERT_TRUE(cut.solve({time, error}));
      std::int64_t least = INT64_MAX;
      for (const Point& point : points) least = std::min(least, point.first * time + point.second * error);
      ASSERT_EQ(cut.getTime() * time + cut.getError() * error, least) << "round " << round;
      for (unsigned slot = 0; slot < before.size(); ++slot) {
        ASSERT_LE(cut.isLow(slot), before[slot]) << "round " << round << ": low again at a higher price";
        before[slot] = cut.isLow(slot);
      }
    }
  }
}

TEST(PrecisionHull, CornersAreNested) {
  std::mt19937 engine(26);
  for (int round = 0; round < 300; ++round) {
    PrecisionCut cut = CutOf(MakeGraph(engine));
    const std::vector<HullPoint> hull = findLowerHull(cut);
    for (std::size_t corner = 1; corner < hull.size(); ++corner) {
      ASSERT_GT(hull[corner].time, hull[corner - 1].time);
      ASSERT_LT(hull[corner].error, hull[corner - 1].error);
      for (std::size_t slot = 0; slot < hull[corner].low.size(); ++slot) {
        ASSERT_LE(hull[corner].low[slot], hull[corner - 1].low[slot]) << "round " << round;
      }
    }
  }
}

TEST(PrecisionHull, ErrorOfAValueIsMadeOnceHoweverManyReadItLow) {
  PrecisionCut cut;
  const unsigned producer = cut.addNode(Pin::F32), first = cut.addNode(Pin::None, 10),
                 second = cut.addNode(Pin::None, 10);
  cut.addValue(producer, std::array{first, second}, 1);
  cut.addError(std::array{producer, first, second}, 7);
  const std::vector<HullPoint> hull = findLowerHull(cut);
  ASSERT_EQ(hull.size(), 2U);
  EXPECT_EQ(Point(hull[0].time, hull[0].error), Point(1, 7));
  EXPECT_EQ(Point(hull[1].time, hull[1].error), Point(20, 0));
}

TEST(PrecisionHull, SumsUpToTheLimitAreExact) {
  PrecisionCut cut;
  const std::int64_t half = hullLimit / 2 - 1;
  const unsigned first = cut.addNode(Pin::None, half), second = cut.addNode(Pin::None, half);
  cut.addError(std::array{first}, half);
  cut.addError(std::array{second}, half - 1);
  const std::vector<HullPoint> hull = findLowerHull(cut);
  ASSERT_EQ(hull.size(), 3U) << "the second node pays for one unit of error less";
  EXPECT_EQ(Point(hull[1].time, hull[1].error), Point(half, half - 1));
}

TEST(PrecisionHull, FactorsThatOverflowAreRefused) {
  PrecisionCut cut;
  const unsigned node = cut.addNode(Pin::None, PrecisionCut::costLimit / 4);
  cut.addError(std::array{node}, PrecisionCut::costLimit / 4);
  EXPECT_TRUE(cut.solve({1, 1}));
  EXPECT_TRUE(cut.solve({0, 3}));
  EXPECT_FALSE(cut.solve({2, 2}));
  EXPECT_FALSE(cut.solve({INT64_MAX, 0}));
}

}  // namespace
}  // namespace mpc
