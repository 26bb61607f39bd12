// Decides which optimizer updates may share a kernel.
#pragma once

#include "mlir/IR/Operation.h"

namespace mpc {

/// Whether two updates agree as the runtime asks of instructions that share a kernel (MayShareKernel of step_groups.h).
/// They agree in name, inherent attributes, element types, and in which of their results something reads. Shapes may
/// differ. Order and independence, which the runtime asks for too, are not looked at.
bool mayShareKernel(mlir::Operation *a, mlir::Operation *b);

} // namespace mpc
