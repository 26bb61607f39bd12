// The order of a function's operations with the lower planned peak on a device.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/executable.h"

namespace mpc::compiler {

/// Does what mpc-schedule does, with the workspaces of \p Target's kernels and with what they may write over: where the
/// arena that is planned for the new order is not smaller, the old order stays. Workspaces of the CPU alone are asked
/// for, and where nothing is timed: another device's plan is too expensive to make twice.
void lowerPeak(mlir::func::FuncOp Function, const runtime::Device &Target, const runtime::PlanOptions &Options);

} // namespace mpc::compiler
