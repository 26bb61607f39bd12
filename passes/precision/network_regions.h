// Where in a module levels act, and which operations are part of a loss or its labels.
#pragma once

#include "compiler/dialect/dialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseSet.h"

namespace mpc {

class NetworkRegions {
public:
  explicit NetworkRegions(mlir::ModuleOp Module);

  /// Operations that a level acts on: those of networks and of `amp::AutoCast` scopes; without any scope, those of
  /// every function that is no training step.
  bool isInNetwork(mlir::Operation *Op) const { return Network.contains(Op); }

  /// Operations behind the value that `value_and_grad` or `backward` differentiates, back to the last matrix work or
  /// norm: a loss written by hand.
  bool isDifferentiated(mlir::Operation *Op) const { return Differentiated.contains(Op); }

  /// The operation that gives the differentiated value itself.
  bool givesDifferentiatedValue(mlir::Operation *Op) const { return DifferentiatedValue.contains(Op); }

  /// Whether `backward` differentiates by a result of the operation. Such a value keeps its type: a cast of it would
  /// not lead to the loss.
  bool isDifferentiatedBy(mlir::Operation *Op) const;

  /// What a network does to labels before its loss reads them.
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
