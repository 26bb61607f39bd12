// Says which results of a step, or of a sequence, are the new values of which arguments.
#pragma once

#include "compiler/dialect/state_attributes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallVector.h"

namespace mpc {

/// The verifier of `mpc.step` on a `func.func`. State has one argument each, and belongs to state that exists. Results
/// with a role of state are the new values of arguments of their role and type, one each.
llvm::LogicalResult verifyStep(mlir::Operation *op);

/// The verifier of `mpc.sequence` on a `func.func`, which is private and no step: its results are of the types of its
/// first arguments.
llvm::LogicalResult verifySequence(mlir::Operation *op);

/// Whether \p op is a function that becomes a sequence of a Program.
bool isSequence(mlir::Operation *op);

/// \p function, and the functions that `mpc.repeat` calls in it, and in those: each once, callers first.
llvm::SmallVector<mlir::func::FuncOp> withCalled(mlir::func::FuncOp function);

/// The same of several functions, each once, callees first. Takes time linear in what it returns and in the module's
/// functions.
llvm::SmallVector<mlir::func::FuncOp> calleesFirst(llvm::ArrayRef<mlir::func::FuncOp> functions);

/// What the arguments and results of a verified function are. A result with a role of state is the new value of the
/// argument of its name. In a sequence each result is the new value of the argument at its position. A StepSignature
/// holds indices, as the function was when it was made.
class StepSignature {
public:
  explicit StepSignature(mlir::FunctionOpInterface function);

  /// The argument whose new value result \p result is; none for data.
  std::optional<unsigned> argumentOf(unsigned result) const { return arguments[result]; }
  /// The result that is the new value of argument \p argument; none where the function returns none.
  std::optional<unsigned> resultOf(unsigned argument) const { return results[argument]; }

private:
  llvm::SmallVector<std::optional<unsigned>> arguments;
  llvm::SmallVector<std::optional<unsigned>> results;
};

} // namespace mpc
