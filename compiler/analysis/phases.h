// Which operations belong to the backward pass, and what that pass reads of the forward pass. Regions, data movement
// and casts are answered for as well.
#pragma once

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace mpc {

/// Whether autodiff or mpc-recompute has made the operation, one of its region, or what it moves or casts.
bool isBackwardOp(mlir::Operation *Op);

/// Whether a forward operation computes the result, in a region with backward operations or not.
bool isForwardResult(mlir::OpResult Result);

/// Whether a value is read for the backward pass: by a backward operation, or by a region with backward operations,
/// unless what the region computes from it for the forward pass is a result of its own: it is read there anyway then.
bool isReadBackward(mlir::OpOperand &Use);

/// Whether a value, or a view of it that the forward pass makes, is read for the backward pass.
bool isReadBackward(mlir::Value V);

/// Whether the operation only shows, moves or converts elements.
bool isMovementOrCast(mlir::Operation *Op);

/// Results of forward operations that the backward pass reads, behind views, in program order: what has to be kept.
/// Regions that mix both are looked into.
llvm::SetVector<mlir::Value> savedValues(mlir::Block &Body);

} // namespace mpc
