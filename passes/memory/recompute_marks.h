// Finds the values that calls of Cells with Recompute() do not keep.
#pragma once

#include "passes/memory/recomputation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mpc {

/// Adds to \p Chosen every result of a forward operation that only operations of its own call and the backward pass
/// read. So what a call takes from outside and hands on stays. \p CallOf gives the call of an operation; casts and data
/// movement that have none belong to that of what they read.
void addCalls(mlir::Block &Body, llvm::function_ref<std::optional<int64_t>(mlir::Operation *)> CallOf,
              Recomputation &Chosen);

/// The call that `mpc.recompute` names, in a region on all operations but casts and data movement.
std::optional<int64_t> markedCall(mlir::Operation *Op);

} // namespace mpc
