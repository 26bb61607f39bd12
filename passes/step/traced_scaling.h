// Training steps whose scalers were traced by hand: what they leave to the wrap.
#pragma once

#include "passes/step/process_mean.h"
#include "passes/step/step_flow.h"

namespace mpc {

/// Whether \p function checks gradients itself: it has mpc.all_finite.
bool hasTracedScaling(mlir::func::FuncOp function);

/// Gives running statistics and generator counters of such a step the predicate that they lack. A request whose flag
/// decides no update (its scaler does not skip) holds nothing. The other checks take in the norms that may overflow
/// though the gradients are finite.
void guardTracedScaling(mlir::func::FuncOp function, const StepFlow &flow);

/// Lets such a step read the means of its scaled gradients over the processes of \p sharing, of which there are
/// several. Its checks become those of all processes. Emits an error and fails where WeightedMean does.
llvm::LogicalResult shareTracedScaling(mlir::func::FuncOp function, const ProcessMean &sharing);

} // namespace mpc
