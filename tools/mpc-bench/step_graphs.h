// What a step does with its gradients, as graphs that `mpc-bench --op` measures.
#pragma once

#include <vector>

#include "tools/mpc-bench/op_graphs.h"

namespace mpc::tools {

/// The finite check, the norm and updates, of several tensors of one size.
std::vector<OpGraph> StepGraphs();

}  // namespace mpc::tools
