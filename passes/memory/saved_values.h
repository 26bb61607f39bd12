// What the backward pass reads of the forward pass.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace mpc {

/// Whether autodiff or mpc-recompute has made the operation, or one of its region.
bool isBackwardOp(mlir::Operation *Op);

/// Whether the operation only shows, moves or converts elements.
bool isMovementOrCast(mlir::Operation *Op);

/// Bytes of a tensor; 0 for anything else.
int64_t bytesOf(mlir::Value V);

/// Results of forward operations that the backward pass reads, behind reshapes, in program order: what has to be kept.
llvm::SetVector<mlir::Value> savedValues(mlir::Block &Body);

} // namespace mpc
