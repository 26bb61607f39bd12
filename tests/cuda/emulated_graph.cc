#include "tests/cuda/emulated_graph.h"

#include <random>
#include <utility>

namespace mpc::emulation {

std::vector<std::size_t> DrawOrder(const GraphWork& nodes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> missing(nodes.size()), ready, order;
  std::vector<std::vector<std::size_t>> after(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    missing[i] = nodes[i].needs.size();
    for (const std::size_t before : nodes[i].needs) after[before].push_back(i);
    if (missing[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    for (const std::size_t next : after[order.back()]) {
      if (--missing[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

std::vector<bool> NodesUpTo(const GraphWork& nodes, const std::vector<std::size_t>& ends) {
  std::vector<bool> reached(nodes.size());
  for (const std::size_t end : ends) reached[end] = true;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!reached[i]) continue;
    for (const std::size_t before : nodes[i].needs) reached[before] = true;
  }
  return reached;
}

}  // namespace mpc::emulation
