// What the operations of a step are there for, and what the backward pass reads of the forward pass. Regions, data
// movement and casts are answered for as well.
#pragma once

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace mpc {

/// The phase of each operation of a function that is lowered: of one block. Most say it themselves, or are marked. What
/// stands outside the network is for the update where updates alone read it, records and checks aside, or where it
/// reads what they have made. A region is in the backward pass where something in it is. Operations of a sequence are
/// as if its call stood in no step: lowering gives them the phase of the call.
class StepPhases {
public:
  explicit StepPhases(mlir::func::FuncOp Function);

  /// Of an operation of the block.
  Phase of(mlir::Operation *Op) const { return Phases.lookup(Op); }

private:
  bool isForUpdates(mlir::Operation *Op) const;
  bool readsUpdates(mlir::Operation *Op) const;

  mlir::Block &Body;
  llvm::SmallVector<bool> BecomesState; ///< each result
  llvm::DenseMap<mlir::Operation *, Phase> Phases;
};

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
