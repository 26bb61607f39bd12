// A function's body without calls, outside the module.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

#include <memory>

namespace mpc {

/// A copy of a function's operations in a block of its own. Nothing in the module changes until the block is spliced
/// into it, so a derivative that fails leaves the module as it was.
struct FlatBody {
  std::unique_ptr<mlir::Block> body;           ///< one argument for each argument of the function
  llvm::SmallVector<mlir::Value> results;      ///< what the function returns
  llvm::SetVector<mlir::func::FuncOp> inlined; ///< the function and every function it calls
};

/// Copies \p callee and inlines every `func.call` in it. Emits an error at \p user and fails where a function has no
/// body, has control flow or calls itself.
llvm::FailureOr<FlatBody> flattenFunction(mlir::func::FuncOp callee, mlir::Operation *user,
                                          mlir::SymbolTableCollection &symbols);

/// Moves the operations of \p flat before \p place, with \p operands for its arguments; returns its results.
llvm::SmallVector<mlir::Value> splice(FlatBody &flat, mlir::Operation *place, mlir::ValueRange operands);

} // namespace mpc
