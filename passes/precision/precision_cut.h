// The exact minimum cut between low precision and f32. Knows nodes and values, no IR.
//
// The cut follows from a maximum flow (Ford and Fulkerson 1956, "Maximal flow through a network"). It is exact for the
// given weights alone. They know nothing of accuracy, and nothing of casts that later passes remove.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace mpc {

/// Chooses low or f32 for every node so that the casts of values cost least.
///
/// A node reads and writes one precision. A value has the precision of its producer, and one cast of it costs its
/// weight. It is cast once if the producer is low and some consumer f32. It is cast once if the producer is f32 and
/// some consumer low.
///
///     S = low, T = f32;  low pins S->n inf;  f32 pins n->T inf;  a node's gain g > 0: S->n cap g, g < 0: n->T cap -g
///
///     value v from p, consumers C, weight w:  p->a_v cap w, a_v->c inf;  b_v->p cap w, c->b_v inf
///
/// Of several optimal assignments solve() takes the one with the most low nodes. It is unique: the complement of what
/// reaches T in the residual network.
class PrecisionCut {
public:
  enum class Pin { None, Low, F32 };

  /// The bound that weights and gains, without their signs, must add up to less than.
  static constexpr std::int64_t costLimit = std::int64_t(1) << 61;

  /// Adds a node and returns its number, from 0. \p lowGain is what the node saves where it is low (negative: costs).
  unsigned addNode(Pin pinned = Pin::None, std::int64_t lowGain = 0);

  /// Adds a value of a node that was added before. Its consumers are added before solve(). Consumers may repeat and may
  /// hold the producer, which changes nothing. \p weight is what one cast of it costs, >= 0.
  void addValue(unsigned producer, std::span<const unsigned> consumers, std::int64_t weight);

  /// Solves for the nodes and values so far. It may be called again after more were added. False, and nothing is
  /// solved, where weights and gains add up to costLimit or more.
  [[nodiscard]] bool solve();

  /// Whether the node is low. Valid after solve() returned true.
  bool isLow(unsigned node) const { return low[node]; }

  /// The weights of the casts, the positive gains of nodes that are f32, and the sizes of negative gains of nodes that
  /// are low. Valid after solve() returned true.
  std::int64_t getCost() const { return cost; }

  unsigned numNodes() const { return static_cast<unsigned>(nodes.size()); }

private:
  struct Node {
    Pin pinned;
    std::int64_t lowGain;
  };
  struct Value {
    unsigned producer;
    std::vector<unsigned> consumers;
    std::int64_t weight;
  };

  void addToTotal(std::int64_t amount);

  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<bool> low;
  std::int64_t cost = 0;
  std::int64_t total = 0; ///< sum of weights and gains, at most costLimit
};

} // namespace mpc
