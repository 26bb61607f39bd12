// The first step after which the states of two runs differ.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/mpc-bisect/bisection.h"

namespace mpc::tools {

/// Whether the file begins as those of `mpc-train --record-hashes` do. False for a file that cannot be read.
bool IsHashFile(const std::string& path);

/// Compares the hashes of the steps that both files have. Errors (INVALID_ARGUMENT): those of ReadStateHashes; the
/// files have no step in common.
absl::StatusOr<Bisection> BisectHashFiles(const std::string& first, const std::string& second);

}  // namespace mpc::tools
