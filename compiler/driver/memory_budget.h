// Compiling a step within a memory budget: the head is computed in chunks, and what is kept for the backward pass is
// given up, until arena, state and constants fit.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/driver/step_compiler.h"

namespace mpc::compiler {

/// Plans with as few chunks of the head, from `Options.head_chunks` to 16, as bring arena, state and constants to
/// at most `Options.memory_budget` bytes; where more chunks do not, with as few recomputed values beside them. The
/// candidates of mpc-recompute are taken in their order, the least work for each byte first: operations without matrix
/// work, and Cells with convolutions and products only where those are not enough. Each trial is planned to its last
/// offset, so that the figure compared is the planned one. The options of the result have the chunks and the
/// number of candidates. Errors: RESOURCE_EXHAUSTED with the budget, the smallest plan found and where its peak lies;
/// what compiling says.
absl::StatusOr<CompileResult> planWithin(StepCompiler &Step, const CompileOptions &Options);

/// The same with code, which is made for the plan that fits alone.
absl::StatusOr<CompileResult> compileWithin(StepCompiler &Step, const CompileOptions &Options);

} // namespace mpc::compiler
