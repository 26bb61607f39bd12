// Decides which optimizer updates may share a kernel.
#pragma once

#include "mlir/IR/Operation.h"

namespace mpc {

/// Whether two updates are what the runtime asks of instructions that share a kernel. They agree in name, inherent
/// attributes, element types, and in which of their results something reads. Shapes may differ.
bool mayShareKernel(mlir::Operation *a, mlir::Operation *b);

} // namespace mpc
