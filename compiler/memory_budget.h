// Compiling a step within a memory budget: the head is computed in chunks, and what is kept for the backward pass is
// given up, until arena and state fit.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/compiler.h"

namespace mpc::compiler {

/// Compiles with as few chunks of the head, from `options.head_chunks` to 16, as bring arena and state to at most
/// `options.memory_budget` bytes; where more chunks do not, with as few recomputed values beside them. The
/// candidates of mpc-recompute are taken in their order, the least work for each byte first: operations without matrix
/// work, and Cells with convolutions and products only where those are not enough. Each trial is a whole compilation,
/// so that the figure compared is the planned one. Errors: RESOURCE_EXHAUSTED with the budget, the smallest plan found
/// and where its peak lies; what compiling says.
absl::StatusOr<CompileResult> CompileWithin(const Module &module, const CompileOptions &options);

} // namespace mpc::compiler
