// What a step begins with, in two capsules.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/state/step_capsule.h"

namespace mpc::tools {

struct Beginning {
  bool differs = false;            ///< a bit of the batch or of the state, which includes generators
  std::vector<std::string> lines;  ///< for people: batch, state, Program, choices, options, and where they were made
};

/// Compares all that determines the step. Errors (INVALID_ARGUMENT) name what cannot be compared. That is another
/// number of the step, or inputs, parameters or common state of other names or types.
absl::StatusOr<Beginning> CompareBeginnings(const StepCapsule& first, const StepCapsule& second);

/// A line for each output and state entry that differs after the step, of those that both have.
std::vector<std::string> CompareEnds(const StepCapsule& first, const StepCapsule& second);

}  // namespace mpc::tools
