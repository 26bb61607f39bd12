// The wrap of a training step: loss scales, finite checks, guarded updates, accumulation.
#pragma once

#include "passes/step/process_mean.h"
#include "passes/step/step_flow.h"

namespace mpc {

struct WrapOptions {
  bool scaled = true;            ///< scale the losses and check their gradients
  bool skip = true;              ///< hold state where a gradient is not finite
  bool unscale = true;           ///< divide gradients by the scale; false where the optimizer does
  int64_t numLosses = 1;         ///< loss scalers; one is shared
  int64_t accumulationSteps = 1; ///< micro-steps before an optimizer acts
  GradientExchange exchange;     ///< what processes that train together add
  bool lastMicroStep = true;     ///< false: a micro-step before the last, of several processes
};

/// Wraps one training step whose requests all have the seed 1. \p flow is that of the step, which has a request. Emits
/// an error and fails where a request asks for a scaler that does not exist, and where shareState does. See
/// mpc-loss-scale in passes.td for the IR.
llvm::LogicalResult wrapStep(mlir::func::FuncOp function, const StepFlow &flow, const WrapOptions &options);

} // namespace mpc
