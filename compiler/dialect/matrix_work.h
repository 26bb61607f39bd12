// Matrix work of any operation: see MatrixWorkOpInterface.
#pragma once

#include "mlir/IR/Operation.h"

namespace mpc {

/// Floating-point operations of the matrix products of \p op; 0 where it has none. A multiplication and an addition
/// count as two.
double matrixFlops(mlir::Operation *op);

} // namespace mpc
