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
    mlir::Value Value;
    std::string Name;
  };

  /// Looks at the operations of \p Body before \p End, where the cotangents go. A null \p End means all operations, and
  /// the cotangents go to the end of the block.
  ReverseSweep(mlir::Block &Body, llvm::ArrayRef<Input> Inputs, mlir::Operation *End = nullptr);

  /// The gradients in the order of the inputs, of their types; null where the loss does not depend on an input.
  /// \p LossCotangent has the type of \p Loss. Emits an error and fails at an operation on the path without a rule.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> run(mlir::Value Loss, mlir::Value LossCotangent);

private:
  /// The operations that the sweep looks at.
  llvm::iterator_range<mlir::Block::iterator> operations();
  /// Marks what depends on the inputs.
  void markActive();
  bool dependsOnInputs(mlir::Operation &Op) const;
  llvm::LogicalResult differentiate(mlir::Operation &Op, mlir::OpBuilder &Builder);
  /// The sum of what the uses of \p V contributed; null if there was none. Nothing contributes afterwards.
  mlir::Value cotangentOf(mlir::Value V, mlir::OpBuilder &Builder);
  llvm::LogicalResult reportMissingRule(mlir::Operation &Op) const;
  llvm::SmallVector<mlir::Operation *> pathFromLoss(mlir::Operation &Op) const;
  llvm::SmallVector<mlir::Operation *> pathToInput(mlir::Operation &Op, mlir::Value &Reached) const;

  mlir::Block &Body;
  mlir::Operation *End;
  llvm::SmallVector<Input> Inputs;
  mlir::Value Loss;
  llvm::DenseSet<mlir::Value> Active;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> Contributions;
  /// The operation whose rule first contributed to a value's cotangent.
  llvm::DenseMap<mlir::Value, mlir::Operation *> ReachedThrough;
};

} // namespace mpc
