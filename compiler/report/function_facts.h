// Facts about the operations of a function: places, directions, reasons, kinds of casts. The tables and texts of this
// folder use them.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "compiler/module/graph_builder.h"
#include "compiler/report/cast_statistics.h"
#include "llvm/ADT/DenseMap.h"

#include <string>

namespace mpc::compiler {

/// "f16" of a tensor of f16.
std::string elementName(mlir::Value v);

/// "conv2d".
std::string mnemonicOf(mlir::Operation *op);

/// "f16 f32": each floating type once, in the order of its first value.
std::string floatingTypes(mlir::ValueRange values);

/// Errors: NOT_FOUND where the module has no such function with a body.
absl::StatusOr<mlir::func::FuncOp> findFunction(const Module &target, const std::string &name);

/// The operations of one function in program order.
class FunctionFacts {
public:
  explicit FunctionFacts(mlir::func::FuncOp function);

  /// Operations that read or write a floating tensor, without casts, constants and data movement.
  llvm::ArrayRef<mlir::Operation *> getOperations() const { return operations; }
  llvm::ArrayRef<CastOp> getCasts() const { return casts; }

  /// Position in operations(), from 1; 0 for others.
  unsigned ordinal(mlir::Operation *op) const { return ordinals.lookup(op); }

  /// Whether the operation computes cotangents.
  static bool isBackward(mlir::Operation *op);

  /// Whether the operation is part of the update of state: nothing decides its precision.
  bool isUpdate(mlir::Operation *op) const;

  /// Whether the operation has the precision of what it is a gradient of.
  bool followsForward(mlir::Operation *op) const;

  /// The reasons of `mpc.precision`; "backward" or "update" where an operation follows others; empty where nothing
  /// decided.
  std::string reasonOf(mlir::Operation *op) const;

  CastKind kindOf(CastOp cast) const;
  CastRecord recordOf(CastOp cast) const;

  /// The argument's name, or "conv2d in lenet5/conv1".
  std::string describe(mlir::Value v) const;

private:
  void visit(mlir::Operation *op);

  mlir::func::FuncOp function;
  llvm::SmallVector<mlir::Operation *> operations;
  llvm::SmallVector<CastOp> casts;
  llvm::DenseMap<mlir::Operation *, unsigned> ordinals;
};

} // namespace mpc::compiler
