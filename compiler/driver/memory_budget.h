// Compiles a step within a memory budget. The head is computed in chunks, and values that are kept for the backward
// pass are given up. This goes on until arena, state and constants fit.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/driver/step_compiler.h"

namespace mpc::compiler {

/// Plans a step whose arena, state and constants take at most `CompileOptions::memory_budget` bytes. It takes as few
/// chunks of the head as that needs, from `CompileOptions::head_chunks` to 16. Where chunks are not enough, it takes as
/// few recomputed values beside them as that needs. The candidates of mpc-recompute are taken in their order, the least
/// work for each byte first. Operations without matrix work come first. Cells with convolutions and products come only
/// where those are not enough. Each trial is planned to its last offset, so that the figure compared is the planned
/// one. The options of the result have the chunks and the number of candidates. Errors: RESOURCE_EXHAUSTED with the
/// budget, the smallest plan found and where its peak lies; what compiling says.
absl::StatusOr<CompileResult> planWithin(StepCompiler &step, const CompileOptions &options);

/// The same with code, which is made for the plan that fits alone.
absl::StatusOr<CompileResult> compileWithin(StepCompiler &step, const CompileOptions &options);

} // namespace mpc::compiler
