// Finds what a network does to labels before its loss reads them.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace mpc {

/// The operations that compute \p labels from function arguments and constants by element-wise work, reductions and
/// casts alone. Empty if there are none, or if a network computes the value: such a target is no label.
llvm::SetVector<mlir::Operation *> labelSlice(mlir::Value labels);

} // namespace mpc
