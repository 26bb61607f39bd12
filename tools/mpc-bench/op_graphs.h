// The table of small graphs that `mpc-bench --op` measures: single operations, and several that the compiler may make
// one kernel of.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/mpc-bench/graph_under_test.h"

namespace mpc::tools {

struct OpGraph {
  std::string name;
  std::string sizes;    ///< what --shape holds: "MxKxN"
  Shape default_shape;  ///< beyond the caches of most processors where memory is the limit
  std::function<void(GraphUnderTest&, const Shape&)> build;
  /// Floating-point operations of matrix work; empty: memory is the limit, whatever is computed.
  std::function<double(const Shape&)> flops;
};

/// All graphs, in the order of the help.
const std::vector<OpGraph>& OpGraphs();
std::vector<std::string> OpGraphNames();

/// Errors: there is no such graph; `shape`, unless empty, has another number of sizes than the graph.
absl::Status CheckOpGraph(const std::string& name, const Shape& shape);

/// The graph called `name`, for which CheckOpGraph holds.
const OpGraph& FindOpGraph(const std::string& name);

}  // namespace mpc::tools
