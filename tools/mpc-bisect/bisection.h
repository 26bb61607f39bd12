// Where one step of two runs begins to differ.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/mpc-bisect/options.h"
#include "tools/mpc-bisect/step_results.h"

namespace mpc::tools {

struct Bisection {
  std::string text;
  /// A bit differs: of what the step begins with, of a result that both compute, or of what the runs kept after it.
  bool differs = false;
};

/// Replays both steps twice at most. The second time it is for the values of the first result that differs. Errors:
/// those of CompareBeginnings and of ComputeResults.
absl::StatusOr<Bisection> BisectCapsules(const CapsuleFile& first, const CapsuleFile& second);

/// Reads both files first: capsules, or the hashes of two runs. Errors also: those of ReadStepCapsule and of
/// BisectHashFiles.
absl::StatusOr<Bisection> BisectFiles(const BisectOptions& options);

}  // namespace mpc::tools
