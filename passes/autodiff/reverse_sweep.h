// Reverse-mode differentiation of a straight-line block.
#pragma once

#include "compiler/dialect/dialect.h"
#include "llvm/ADT/DenseSet.h"

#include <string>

namespace mpc {

/// Walks a block from its loss back to the values to differentiate by. Asks each operation between them for its
/// derivative rule, and puts the cotangents behind them. What it creates carries `mpc.backward` and the `mpc.scope` of
/// the forward operation.
///
/// An operation is on the gradient path if it depends on one of those values through floating tensors and the loss
/// depends on it. Operations off the path need no rule.
class ReverseSweep {
public:
  /// A value to differentiate by, and what messages call it.
  struct Input {
    mlir::Value value;
    std::string name;
  };

  /// Looks at the operations of \p body before \p end, where the cotangents go. A null \p end means all operations, and
  /// the cotangents go to the end of the block.
  ReverseSweep(mlir::Block &body, llvm::ArrayRef<Input> inputs, mlir::Operation *end = nullptr);

  /// The gradients in the order of the inputs, of their types; null where the loss does not depend on an input.
  /// \p lossCotangent has the type of \p loss. Emits an error and fails at an operation on the path without a rule.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> run(mlir::Value loss, mlir::Value lossCotangent);

private:
  /// The operations that the sweep looks at.
  llvm::iterator_range<mlir::Block::iterator> operations();
  /// Marks what depends on the inputs.
  void markActive();
  bool dependsOnInputs(mlir::Operation &op) const;
  llvm::LogicalResult differentiate(mlir::Operation &op, mlir::OpBuilder &builder);
  /// The sum of what the uses of \p v contributed; null if there was none. Nothing contributes afterwards.
  mlir::Value cotangentOf(mlir::Value v, mlir::OpBuilder &builder);
  llvm::LogicalResult reportMissingRule(mlir::Operation &op) const;
  llvm::SmallVector<mlir::Operation *> pathFromLoss(mlir::Operation &op) const;
  llvm::SmallVector<mlir::Operation *> pathToInput(mlir::Operation &op, mlir::Value &reached) const;

  mlir::Block &body;
  mlir::Operation *end;
  llvm::SmallVector<Input> inputs;
  mlir::Value loss;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> contributions;
  /// The operation whose rule first contributed to a value's cotangent.
  llvm::DenseMap<mlir::Value, mlir::Operation *> reachedThrough;
};

} // namespace mpc
