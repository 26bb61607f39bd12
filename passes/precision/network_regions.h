// Finds where in a module levels act, and which operations are part of a loss or its labels.
#pragma once

#include "compiler/dialect/dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

namespace mpc {

class NetworkRegions {
public:
  explicit NetworkRegions(mlir::ModuleOp Module);

  /// Whether a level acts on \p Op. Levels act on operations of networks and of `amp::AutoCast` scopes. Without any
  /// scope they act on every function that is no training step.
  bool isInNetwork(mlir::Operation *Op) const { return Network.contains(Op); }

  /// Whether \p Op is part of a loss written by hand. It leads to the value that `value_and_grad` or `backward`
  /// differentiates, and comes after the last matrix work or norm.
  bool isDifferentiated(mlir::Operation *Op) const { return Differentiated.contains(Op); }

  /// Whether \p Op gives the differentiated value itself.
  bool givesDifferentiatedValue(mlir::Operation *Op) const { return DifferentiatedValue.contains(Op); }

  /// Whether `backward` differentiates by a result of the operation. Such a value keeps its type: a cast of it would
  /// not lead to the loss.
  bool isDifferentiatedBy(mlir::Operation *Op) const;

  /// Whether \p Op is what a network does to labels before its loss reads them.
  bool isLabel(mlir::Operation *Op) const { return Labels.contains(Op); }

private:
  void collectNetwork(mlir::ModuleOp Module);
  void collectDifferentiated(mlir::ModuleOp Module);
  void collectLabels(mlir::ModuleOp Module);

  llvm::DenseSet<mlir::Operation *> Network;
  llvm::DenseSet<mlir::Operation *> Differentiated;
  llvm::DenseSet<mlir::Operation *> DifferentiatedValue;
  llvm::DenseSet<mlir::Operation *> Labels;
};

} // namespace mpc
