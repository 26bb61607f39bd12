// The graph of a function for Graphviz. Free of MLIR headers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"

namespace mpc::compiler {

/// `function` as a directed graph: a node for each operation, filled by the element type it writes (see the legend), an
/// edge for each use labelled with the tensor's type, operations of one Cell in a cluster, casts as red hexagons, and
/// "[region 2]" behind what one kernel computes together.
/// `dot -Tsvg` draws it.
/// Errors: NOT_FOUND where the module has no such function with a body.
absl::StatusOr<std::string> DotGraph(const Module &module, const std::string &function);

} // namespace mpc::compiler
