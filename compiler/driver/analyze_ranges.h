// The ranges of a traced step. Free of MLIR headers.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"
#include "compiler/options/compile_options.h"
#include "compiler/report/range_table.h"

namespace mpc::compiler {
// NOLINTBEGIN(readability-identifier-naming): the front end calls this, so that it has the front end's names.

/// Runs the passes on a copy of `traced` up to the stage grad and tabulates `options.function`. Errors: those of the
/// passes and of TabulateRanges.
absl::StatusOr<RangeTable> AnalyzeRanges(const Module &traced, const CompileOptions &options,
                                         const RangeAssumptions &assumptions);

// NOLINTEND(readability-identifier-naming)
} // namespace mpc::compiler
