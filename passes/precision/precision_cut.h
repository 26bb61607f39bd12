// The exact minimum cut between low precision and f32. Knows nodes and values, no IR.
//
// The cut follows from a maximum flow (Ford and Fulkerson 1956, "Maximal flow through a network"). It is exact for the
// given weights alone. They know nothing of casts that later passes remove.
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
///     error e of nodes N:  n->e_N inf, e_N->T cap e
///
/// Weights and gains are times. An error is paid where one of its nodes is low, so it only ever speaks against low. The
/// low nodes of a larger factor of errors are therefore among those of a smaller one, at the same factor of times.
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

  /// Adds an error that is made once where some node of \p nodes, added before, is low. \p size is >= 0. A value that
  /// is rounded has its producer and its consumers; nodes may repeat.
  void addError(std::span<const unsigned> nodes, std::int64_t size);

  /// What solve() multiplies times (weights and gains) and errors by, both >= 0.
  struct Factors {
    std::int64_t time = 1;
    std::int64_t error = 0;
  };

  /// Solves for the nodes, values and errors so far. It may be called again after more were added, or with other
  /// factors. False, and nothing is solved, where times and errors by their factors add up to costLimit or more.
  [[nodiscard]] bool solve(Factors factors = {1, 0});

  /// Whether the node is low. Valid after solve() returned true.
  bool isLow(unsigned node) const { return low[node]; }

  /// What solve() made least: the time and the error of the solution by their factors.
  std::int64_t getCost() const { return cost; }

  /// The weights of the casts, the positive gains of nodes that are f32, and the sizes of negative gains of nodes that
  /// are low. Valid after solve() returned true.
  std::int64_t getTime() const;

  /// The errors of which some node is low. Valid after solve() returned true.
  std::int64_t getError() const;

  /// What weights, gains and errors add up to, without signs and factors; costLimit where it is that or more.
  std::int64_t getTotalTime() const { return totalTime; }
  std::int64_t getTotalError() const { return totalError; }

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

  struct Error {
    std::vector<unsigned> nodes;
    std::int64_t size;
  };

  static void addToTotal(std::int64_t &total, std::int64_t amount);

  std::vector<Node> nodes;
  std::vector<Value> values;
  std::vector<Error> errors;
  std::vector<bool> low;
  std::int64_t cost = 0;
  std::int64_t totalTime = 0, totalError = 0; ///< at most costLimit
};

} // namespace mpc
