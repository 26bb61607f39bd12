// The numbers that a run has at a moment, by name. Not part of the public API.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/train/run_context.h"

namespace mpc::internal {

/// What the last finished step left: "loss", "loss_scale", "skipped_steps"; "gradient_norm" and "learning_rate" where
/// the Model records them. Then what the epoch's evaluation measured, by name.
std::vector<std::pair<std::string, double>> RunScalars(const RunContext& context);

}  // namespace mpc::internal
