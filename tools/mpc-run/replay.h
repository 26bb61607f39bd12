// The step of a capsule, repeated.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/mpc-run/options.h"

namespace mpc::tools {

struct ReplayReport {
  std::string text;      ///< what the capsule is, its record, its first bad value, and what differs
  bool is_equal = true;  ///< every bit of the record and of the state after the step
};

/// Repeats the step of RunOptions::replay_path with RunOptions::threads. Errors: those of ReadStepCapsule and
/// ReplayStep, with the path.
absl::StatusOr<ReplayReport> ReplayCapsule(const RunOptions& options);

}  // namespace mpc::tools
