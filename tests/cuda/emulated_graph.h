// A graph as an emulated GPU captures it: nodes, and which of them come before which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/cuda/emulated_streams.h"

namespace mpc::emulation {

struct GraphNode {
  StreamWork work;
  std::vector<std::size_t> needs;  ///< nodes before it
};

/// Nodes in the order in which they were captured; each comes after those that it needs.
using GraphWork = std::vector<GraphNode>;

/// An order in which a GPU may run the nodes one after another. Each `seed` draws one.
std::vector<std::size_t> DrawOrder(const GraphWork& nodes, std::uint64_t seed);

/// The nodes that `ends` come after, and `ends` themselves, as a flag a node.
std::vector<bool> NodesUpTo(const GraphWork& nodes, const std::vector<std::size_t>& ends);

}  // namespace mpc::emulation
