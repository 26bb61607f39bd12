// The precision of a traced step as a lock. Free of MLIR headers.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"
#include "compiler/options/compile_options.h"
#include "compiler/report/precision_lock.h"

namespace mpc::compiler {
// NOLINTBEGIN(readability-identifier-naming): the front end calls this, so that it has the front end's names.

/// A step as it is traced on a number of samples.
struct TracedBatch {
  Module traced;
  std::int64_t samples = 0;
};

/// The lock of `options.function`, which both modules have on different numbers of samples. Types and reasons are
/// decided on `first`. At O1 and auto `second` follows them, and it tells bytes a sample from others. What does not
/// change a type is as without it: fusion, chunks of the head, recomputation, other processes, statistics of
/// convolutions. Errors: those of the passes; those of LockOperations.
absl::StatusOr<PrecisionLock> LockPrecision(const std::string &network, TracedBatch first, TracedBatch second,
                                            CompileOptions options);

// NOLINTEND(readability-identifier-naming)
} // namespace mpc::compiler
