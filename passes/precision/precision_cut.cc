#include "passes/precision/precision_cut.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>

namespace mpc {

namespace {

// A pin's capacity. Sums of a cut's other capacities stay below it, and two of it fit 64 bits.
constexpr std::int64_t infinite = PrecisionCut::costLimit;

// Maximum flow by blocking flows in level graphs: Dinic 1970, "Algorithm for solution of a problem of maximum flow in a
// network with power estimation". The time is at most proportional to nodes^2 * arcs. No recursion: networks may be
// long chains.
class FlowNetwork {
public:
  explicit FlowNetwork(unsigned numNodes) : arcs(numNodes) {}

  void addArc(unsigned from, unsigned to, std::int64_t capacity) {
    assert(from < arcs.size() && to < arcs.size() && "an arc joins nodes of the network");
    assert(capacity >= 0 && "a capacity is not negative");
    arcs[from].push_back({to, static_cast<unsigned>(arcs[to].size()), capacity});
    arcs[to].push_back({from, static_cast<unsigned>(arcs[from].size() - 1), 0});
  }

  std::int64_t maximumFlow(unsigned source, unsigned sink) {
    std::int64_t flow = 0;
    while (levelsReach(source, sink))
      flow += blockingFlow(source, sink);
    return flow;
  }

  // The nodes that reach the sink through arcs with capacity left.
  std::vector<bool> reaching(unsigned sink) const {
    std::vector<bool> reaches(arcs.size(), false);
    std::vector<unsigned> worklist{sink};
    reaches[sink] = true;
    while (!worklist.empty()) {
      unsigned node = worklist.back();
      worklist.pop_back();
      for (const Arc &out : arcs[node])
        if (!reaches[out.to] && arcs[out.to][out.reverse].capacity > 0) {
          reaches[out.to] = true;
          worklist.push_back(out.to);
        }
    }
    return reaches;
  }

private:
  struct Arc {
    unsigned to;
    unsigned reverse; // index of the opposite arc at `to`
    std::int64_t capacity;
  };

  bool levelsReach(unsigned source, unsigned sink) {
    level.assign(arcs.size(), -1);
    level[source] = 0;
    std::vector<unsigned> queue{source};
    for (std::size_t next = 0; next < queue.size(); ++next)
      for (const Arc &out : arcs[queue[next]])
        if (out.capacity > 0 && level[out.to] < 0) {
          level[out.to] = level[queue[next]] + 1;
          queue.push_back(out.to);
        }
    return level[sink] >= 0;
  }

  std::int64_t blockingFlow(unsigned source, unsigned sink) {
    std::int64_t flow = 0;
    current.assign(arcs.size(), 0);
    std::vector<Arc *> path;
    unsigned node = source;
    while (true) {
      if (node == sink) {
        flow += augment(path);
        // Back to the tail of the first arc that is full now.
        std::size_t keep = 0;
        while (path[keep]->capacity > 0)
          ++keep;
        path.resize(keep);
        node = path.empty() ? source : path.back()->to;
      } else if (Arc *next = admissible(node)) {
        path.push_back(next);
        node = next->to;
      } else if (path.empty()) {
        return flow;
      } else {
        // A dead end: its arc is not tried again in this phase.
        path.pop_back();
        node = path.empty() ? source : path.back()->to;
        ++current[node];
      }
    }
  }

  Arc *admissible(unsigned node) {
    for (std::size_t &index = current[node]; index < arcs[node].size(); ++index) {
      Arc &out = arcs[node][index];
      if (out.capacity > 0 && level[out.to] == level[node] + 1)
        return &out;
    }
    return nullptr;
  }

  std::int64_t augment(const std::vector<Arc *> &path) {
    std::int64_t amount = infinite;
    for (const Arc *step : path)
      amount = std::min(amount, step->capacity);
    assert(!path.empty() && amount > 0 && "an augmenting path has capacity left");
    for (Arc *step : path) {
      step->capacity -= amount;
      arcs[step->to][step->reverse].capacity += amount;
    }
    return amount;
  }

  std::vector<std::vector<Arc>> arcs;
  std::vector<int> level;
  std::vector<std::size_t> current;
};

} // namespace

void PrecisionCut::addToTotal(std::int64_t &total, std::int64_t amount) {
  total = amount < infinite - total ? total + amount : infinite;
}

unsigned PrecisionCut::addNode(Pin pinned, std::int64_t lowGain) {
  addToTotal(totalTime, lowGain <= -infinite ? infinite : std::abs(lowGain));
  nodes.push_back({pinned, lowGain});
  return numNodes() - 1;
}

void PrecisionCut::addValue(unsigned producer, std::span<const unsigned> consumers, std::int64_t weight) {
  assert(weight >= 0 && "a cast does not pay");
  assert(producer < numNodes() && "the producer was added before");
  addToTotal(totalTime, weight);
  values.push_back({producer, {consumers.begin(), consumers.end()}, weight});
}

void PrecisionCut::addError(std::span<const unsigned> ofNodes, std::int64_t size) {
  assert(size >= 0 && "rounding does not make a step more exact");
  addToTotal(totalError, size);
  errors.push_back({{ofNodes.begin(), ofNodes.end()}, size});
}

// Whether the network takes capacities that add up to the time and the error by their factors.
static bool fits(std::int64_t time, std::int64_t error, PrecisionCut::Factors factors) {
  assert(factors.time >= 0 && factors.error >= 0 && "a cost does not pay");
  const auto product = [](std::int64_t sum, std::int64_t factor) {
    return factor != 0 && sum > infinite / factor ? infinite : sum * factor;
  };
  return product(time, factors.time) < infinite - product(error, factors.error);
}

bool PrecisionCut::solve(Factors factors) {
  if (totalTime >= infinite || totalError >= infinite || !fits(totalTime, totalError, factors))
    return false;
  const unsigned source = numNodes(), sink = source + 1, firstValue = sink + 1;
  const unsigned firstError = firstValue + 2 * static_cast<unsigned>(values.size());
  FlowNetwork network(firstError + static_cast<unsigned>(errors.size()));
  for (unsigned node = 0; node < numNodes(); ++node) {
    if (nodes[node].pinned == Pin::Low)
      network.addArc(source, node, infinite);
    if (nodes[node].pinned == Pin::F32)
      network.addArc(node, sink, infinite);
    if (nodes[node].lowGain > 0)
      network.addArc(source, node, nodes[node].lowGain * factors.time);
    if (nodes[node].lowGain < 0)
      network.addArc(node, sink, -nodes[node].lowGain * factors.time);
  }
  unsigned node = firstValue;
  for (const Value &v : values) {
    const unsigned widened = node++, narrowed = node++;
    network.addArc(v.producer, widened, v.weight * factors.time);
    network.addArc(narrowed, v.producer, v.weight * factors.time);
    for (unsigned consumer : v.consumers) {
      network.addArc(widened, consumer, infinite);
      network.addArc(consumer, narrowed, infinite);
    }
  }
  for (const Error &e : errors) {
    const unsigned made = node++;
    network.addArc(made, sink, e.size * factors.error);
    for (unsigned low : e.nodes)
      network.addArc(low, made, infinite);
  }
  cost = network.maximumFlow(source, sink);
  std::vector<bool> reachesF32 = network.reaching(sink);
  low.assign(numNodes(), false);
  for (unsigned node = 0; node < numNodes(); ++node)
    low[node] = !reachesF32[node];
  return true;
}

std::int64_t PrecisionCut::getTime() const {
  std::int64_t time = 0;
  for (unsigned node = 0; node < numNodes(); ++node)
    if (low[node] != (nodes[node].lowGain > 0))
      time += std::abs(nodes[node].lowGain);
  for (const Value &v : values)
    if (std::any_of(v.consumers.begin(), v.consumers.end(),
                    [&](unsigned consumer) { return low[consumer] != low[v.producer]; }))
      time += v.weight;
  return time;
}

std::int64_t PrecisionCut::getError() const {
  std::int64_t error = 0;
  for (const Error &e : errors)
    if (std::any_of(e.nodes.begin(), e.nodes.end(), [&](unsigned node) { return low[node]; }))
      error += e.size;
  return error;
}

} // namespace mpc
