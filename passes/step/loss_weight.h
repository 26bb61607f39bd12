// What counts of a micro-batch in the mean over those of an update.
#pragma once

#include "passes/step/micro_steps.h"

namespace mpc {

/// A mean of gradients over the micro-batches of an update in which each has a weight of its own. Without a weight all
/// count the same, and what the methods are given they give back.
class WeightedMean {
public:
  WeightedMean() = default;
  /// By the weight that the step records for \p request, kLossWeight. The mean of weights over micro-batches is built
  /// where the builder of \p edit stands, behind the request. Emits an error and fails where the loss has several
  /// weights. There is no weight where the update has one micro-batch.
  static llvm::FailureOr<WeightedMean> of(unsigned request, StepEdit &edit, MicroSteps &microSteps);

  /// \p term of this micro-batch times its weight, where \p builder stands. It keeps its type.
  mlir::Value weigh(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value term) const;
  /// \p mean of such terms divided by the mean of weights, or by 1 where that is 0. It keeps its type.
  mlir::Value normalize(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value mean) const;

private:
  mlir::Value weight, divisor;
};

} // namespace mpc
