// The key of a compiled step. Not part of the public API.
#pragma once

#include <string>
#include <vector>

#include "frontend/graph/step_options.h"

namespace mpc::internal {

/// A text that two steps of this process share only if they compile to the same Program and bind the same Parameters.
/// It holds types, the options that VisitStepOptions calls those of the Program, and the tree of Cells with their
/// modes, pins and Parameters. A step that is found by it holds as long as StepFacts::PartsAreThere().
std::string StepKey(nn::Cell* root, const std::vector<Tensor>& inputs, const StepOptions& options);

}  // namespace mpc::internal
