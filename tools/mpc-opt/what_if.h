// The step of a capsule compiled anew, as it was or otherwise. Free of MLIR headers.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace mpc::opt {

struct ReplayRequest {
  std::string path;                  ///< the capsule
  std::vector<std::string> changes;  ///< what the option --what-if of mpc-opt takes; none: as it was
  bool trace = false;                ///< the ranges of the values that lead to the first one that is not finite
};

/// Compiles the step of a capsule with these changes and runs it from the capsule's state and batch. Says whether it is
/// finite, and where it is not: the first value that is not, with what may have caused it. Nothing is written. Errors:
/// a capsule that cannot be read or compiled anew; a change that is not known, with those that are. Errors also: a
/// scale for a step without a scaler; state that the changed step wants and the capsule does not have.
absl::StatusOr<std::string> ReplayWhatIf(const ReplayRequest& request);

}  // namespace mpc::opt
