// Finds the values that calls of Cells with Recompute() do not keep.
#pragma once

#include "passes/memory/recomputation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>

namespace mpc {

/// Adds to \p chosen every result of a forward operation that only operations of its own call and the backward pass
/// read. So what a call takes from outside and hands on stays. \p callOf gives the call of an operation; casts and data
/// movement that have none belong to that of what they read.
void addCalls(mlir::Block &body, llvm::function_ref<std::optional<int64_t>(mlir::Operation *)> callOf,
              Recomputation &chosen);

/// The call that `mpc.recompute` names, in a region on all operations but casts and data movement.
std::optional<int64_t> markedCall(mlir::Operation *op);

} // namespace mpc
