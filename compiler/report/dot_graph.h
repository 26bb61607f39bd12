// The graph of a function for Graphviz. Free of MLIR headers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"

namespace mpc::compiler {

/// `function` as a directed graph. Each operation is a node, filled by the element type it writes (see the legend).
/// Each use is an edge, labelled with the tensor's type. Operations of one Cell are in a cluster, and casts are red
/// hexagons. "[region 2]" stands behind operations that one kernel computes together. `dot -Tsvg` draws it. Errors:
/// NOT_FOUND where the module has no such function with a body.
absl::StatusOr<std::string> DotGraph(const Module &module, const std::string &function);

} // namespace mpc::compiler
