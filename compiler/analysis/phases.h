// The phase of each operation of a step, and which forward values the backward pass reads. Regions, data movement and
// casts are covered too.
#pragma once

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace mpc {

/// The phase of each operation of a function that is to be lowered, which has one block. The kind of most operations
/// names the phase, or a mark does. An operation outside the network belongs to the update where only updates read its
/// results; records and checks do not count. It also belongs to the update where it reads what updates have made. A
/// region belongs to the backward pass if one of its operations does. Operations of a sequence are treated as if the
/// call were in no step. Lowering gives them the phase of the call.
class StepPhases {
public:
  explicit StepPhases(mlir::func::FuncOp function);

  /// The phase of an operation of the block.
  Phase phaseOf(mlir::Operation *op) const { return phases.lookup(op); }

private:
  bool isForUpdates(mlir::Operation *op) const;
  bool readsUpdates(mlir::Operation *op) const;

  mlir::Block &body;
  llvm::SmallVector<bool> becomesState; ///< one flag a result of the function
  llvm::DenseMap<mlir::Operation *, Phase> phases;
};

/// Whether autodiff or mpc-recompute has made the operation, one of its region, or what it moves or casts.
bool isBackwardOp(mlir::Operation *op);

/// Whether a forward operation computes the result, in a region with backward operations or not.
bool isForwardResult(mlir::OpResult result);

/// Whether the backward pass needs this use of a value. The reader is a backward operation, or a region with backward
/// operations. A region does not count if it also computes a forward result of its own from the value: then it reads
/// the value anyway.
bool isReadBackward(mlir::OpOperand &use);

/// Whether a value, or a view of it that the forward pass makes, is read for the backward pass.
bool isReadBackward(mlir::Value v);

/// Whether the operation only shows, moves or converts elements.
bool isMovementOrCast(mlir::Operation *op);

/// Results of forward operations that the backward pass reads, behind views, in program order: what has to be kept.
/// Regions that mix both are looked into.
llvm::SetVector<mlir::Value> savedValues(mlir::Block &body);

} // namespace mpc
