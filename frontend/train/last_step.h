// What checkpoints keep of the last step of an epoch that is under way. Not part of the public API.
#pragma once

#include "absl/status/status.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/train/run_context.h"

namespace mpc::internal {

/// The loss of the last finished step and what it records, by name: "loss", "gradient_norm" and "learning_rate".
TextMap LastStepOf(const RunContext& context);

/// Gives `context` what LastStepOf has written, so that an epoch of which no step is left ends with the numbers of its
/// last one. Errors (INVALID_ARGUMENT): a text that is no number.
absl::Status TellLastStep(const TextMap& step, RunContext& context);

}  // namespace mpc::internal
