// The memory that regions across the border of the forward and the backward pass cost.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mpc {

/// How many bytes more are kept for the backward pass where two groups of operations run as one. It is 0 unless one
/// group is of the forward pass alone and the other is not. Then the first group waits for the second, and what it
/// reads is kept instead of what it makes. It is negative where that is less. \p isReadBackward says whether the
/// backward pass reads a value.
int64_t bytesKeptMore(llvm::ArrayRef<mlir::Operation *> a, llvm::ArrayRef<mlir::Operation *> b,
                      llvm::function_ref<bool(mlir::Value)> isReadBackward);

} // namespace mpc
