// The content of a region of given operations, and the values that would cross its border.
#pragma once

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"

namespace mpc {

struct FusionBody {
  /// The operations and the views between them, each behind what it reads. A view may be in several bodies and
  /// outside, too: it moves nothing.
  llvm::SmallVector<mlir::Operation *> operations;
  /// The values that they read from outside, each once.
  llvm::SmallVector<mlir::Value> inputs;
  /// Results that something outside reads, behind views or not.
  llvm::SmallVector<mlir::Value> outputs;
};

/// The body of \p operations, which are in program order. A view is inside where its source is. It is also inside where
/// the operations read a value of their own size under two shapes: one load serves both.
FusionBody fusionBody(llvm::ArrayRef<mlir::Operation *> operations);

} // namespace mpc
