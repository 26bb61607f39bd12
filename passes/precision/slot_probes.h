// Makes a training step return what low slots would round.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/precision/slot_points.h"
#include "llvm/ADT/ArrayRef.h"

namespace mpc {

/// Makes the step of \p module return the values that the slots \p open would round, and their cotangents. The step is
/// traced, and differentiates one function. To each value that a slot reads or writes a zero is added, by which the
/// step differentiates. So every other output keeps its bits, but for the sign of a zero. A slot outside that function
/// has no probe. Where several requests for gradients, or none, are in the module, no slot has one.
///
/// Data movement rounds what it reads and the cotangent of what it writes: the other two are then exact in the low
/// type. A norm's slot rounds what it writes.
SlotProbes probeSlots(mlir::ModuleOp module, llvm::ArrayRef<std::string> open);

} // namespace mpc
