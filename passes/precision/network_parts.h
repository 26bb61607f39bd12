// Finds where in a module levels act, and which operations are part of a loss or its labels.
#pragma once

#include "compiler/dialect/dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

namespace mpc {

/// Built from a module once. It does not follow later changes of the module, but for isDifferentiatedBy.
class NetworkParts {
public:
  explicit NetworkParts(mlir::ModuleOp module);

  /// Whether a level of mixed precision (O0 to O3, auto) acts on \p op. Levels act on operations of networks and of
  /// `amp::AutoCast` scopes. Without any scope they act on every function without `mpc.value_and_grad`, but for what
  /// updates state. They act on no operation of a backward pass.
  bool isInNetwork(mlir::Operation *op) const { return network.contains(op); }

  /// Whether \p op is part of a loss written by hand. It leads to the value that `value_and_grad` or `backward`
  /// differentiates, or that autodiff has differentiated, and comes after the last matrix work or norm. What gives the
  /// value itself is part of it, whatever its kind. Only operations of the network are. The search stops at casts.
  bool isDifferentiated(mlir::Operation *op) const { return differentiated.contains(op); }

  /// Whether \p op gives the differentiated value itself. Operations that only hand it on (HandsOnValue) may lie
  /// between, and so may mpc.scale_loss.
  bool givesDifferentiatedValue(mlir::Operation *op) const { return differentiatedValue.contains(op); }

  /// Whether `backward` differentiates by a result of the operation. Such a value keeps its type: a cast of it would
  /// not lead to the loss.
  bool isDifferentiatedBy(mlir::Operation *op) const;

  /// Whether \p op is what a network does to labels before its loss reads them. Labels are the second operand of an
  /// operation of the class Loss.
  bool isLabel(mlir::Operation *op) const { return labels.contains(op); }

private:
  void collectNetwork(mlir::ModuleOp module);
  void collectDifferentiated(mlir::ModuleOp module);
  void collectLabels(mlir::ModuleOp module);

  llvm::DenseSet<mlir::Operation *> network;
  llvm::DenseSet<mlir::Operation *> differentiated;
  llvm::DenseSet<mlir::Operation *> differentiatedValue;
  llvm::DenseSet<mlir::Operation *> labels;
};

} // namespace mpc
