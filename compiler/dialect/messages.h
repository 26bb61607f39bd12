// Which operations send messages to other processes. Free of what a transport is.
#pragma once

#include "mlir/IR/Operation.h"

namespace mpc {

/// Whether several processes exchange values in \p op. In one process it would be a copy.
bool sendsMessage(mlir::Operation *op);

/// Whether \p a and \p b, which send messages, may send them as one. The runtime does so where they stand side by side
/// (MayShareKernel of runtime/step_groups.h).
bool mayShareMessage(mlir::Operation *a, mlir::Operation *b);

} // namespace mpc
