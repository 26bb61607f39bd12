// The minimum cut over the slots of a module.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "passes/precision/op_precision.h"

namespace mpc {

/// Decides every slot of \p open that nothing has decided yet, so that casts cost least. The cost is their elements at
/// O1. Where some slot is at level auto, it is their seconds by \p costs, against what low slots save. Decided
/// operations, function inputs and outputs and operations outside every network are fixed. Returns the cost of the
/// casts. Errors: costs that add up to more than a cut takes (PrecisionCut::CostLimit), with the rates they follow
/// from.
llvm::Expected<std::int64_t> solveByCut(mlir::ModuleOp module, const DecidedOperations &decided, OpenOperations &open,
                                        const CostModel &costs);

} // namespace mpc
