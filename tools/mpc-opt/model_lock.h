// Lock files of models, for mpc-opt. Free of MLIR headers.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/mpc-opt/model_source.h"

namespace mpc::opt {

/// What to do with a lock file.
struct LockRequest {
  std::string path;
  bool write = false;   ///< writes the file where there is none
  bool update = false;  ///< writes it anew where it says something else
};

/// Writes or checks the lock file of the model, and returns a line that says so. Errors: those of MakeNetwork,
/// LockNetwork, compiler::CheckPrecisionLock and compiler::WritePrecisionLock, with the way on.
absl::StatusOr<std::string> LockFile(const ModelRequest& request, const LockRequest& lock);

}  // namespace mpc::opt
