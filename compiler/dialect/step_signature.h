// Which results of a step are the new values of which arguments.
#pragma once

#include "compiler/dialect/state_attributes.h"
#include "llvm/ADT/SmallVector.h"

namespace mpc {

/// The verifier of `mpc.step` on a `func.func`. State has one argument each, and belongs to state that exists. Results
/// with a role of state are the new values of arguments of their role and type, one each.
llvm::LogicalResult verifyStep(mlir::Operation *Op);

/// What the arguments and results of a verified function are. A result with a role of state is the new value of the
/// argument of its name. It holds what the function had when it was made, as indices.
class StepSignature {
public:
  explicit StepSignature(mlir::FunctionOpInterface Function);

  /// The argument whose new value result \p Result is; none for data.
  std::optional<unsigned> argumentOf(unsigned Result) const { return ArgumentOf[Result]; }
  /// The result that is the new value of argument \p Argument; none where the function returns none.
  std::optional<unsigned> resultOf(unsigned Argument) const { return ResultOf[Argument]; }

private:
  llvm::SmallVector<std::optional<unsigned>> ArgumentOf;
  llvm::SmallVector<std::optional<unsigned>> ResultOf;
};

} // namespace mpc
