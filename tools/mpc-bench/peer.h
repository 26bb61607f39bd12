// PyTorch beside mpc. It is never needed by anything else.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/mpc-bench/measure.h"

namespace mpc::tools {

/// Whether `options.python` can import torch and the script is there. Errors: which of them is missing and how to name
/// another.
absl::Status CheckTorch(const BenchOptions& options);

/// One run of the peer in a process of its own.
absl::StatusOr<RunResult> MeasureTorch(const BenchOptions& options);

}  // namespace mpc::tools
