// State of a step that moves for the micro-batches of all processes that train together.
#pragma once

#include "passes/step/micro_steps.h"

namespace mpc {

/// Makes one update of those that move a statistic one after the other, as a layer does that runs twice. They agree in
/// momentum and elements, and nothing else reads what is between them. Others stay. It precedes a StepFlow.
void joinStatistics(mlir::func::FuncOp function);

/// Of several processes: lets running statistics move by the micro-batches of all, and generators draw for them. It
/// comes behind MicroSteps::addNumber. Emits an error and fails where other state would move by the rows of this
/// process alone; with accumulation, where it moves in every micro-step. So it does where the forward pass reads a
/// statistic that moves, and where joinStatistics has left several updates of one.
llvm::LogicalResult shareState(StepEdit &edit, MicroSteps &steps);

/// Lets all state but accumulators stay as it is, and erases what only its updates read.
void holdState(StepEdit &edit);

} // namespace mpc
