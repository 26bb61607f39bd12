// The loss scalers of a step: which request has which, their state, and how a step moves it.
#pragma once

#include "passes/step/micro_steps.h"

namespace mpc {

/// A loss scaler and the requests whose losses it scales.
struct Scaler {
  /// What the step multiplies the losses by.
  mlir::Value getScale() const;

  std::string suffix; ///< the end of its names: "" where one scaler serves every loss
  llvm::SmallVector<unsigned> requests;
  llvm::SmallVector<mlir::Value> fields; ///< arguments, in the order of ScalerField
  mlir::Value firstBad;                  ///< what its requests found together, once appendResults() has moved it
};

/// The scalers that requests have. There are none before assign(), and none where losses are not scaled.
class StepScalers {
public:
  /// \p divides: unscale() divides gradients. False where the optimizer does.
  StepScalers(StepEdit &edit, MicroSteps &microSteps, bool divides)
      : edit(edit), microSteps(microSteps), divides(divides) {}

  /// Gives each request its scaler, of \p numLosses. Emits an error and fails where it asks for one that does not
  /// exist.
  llvm::LogicalResult assign(int64_t numLosses);
  /// Adds the fields of the scalers.
  void addArguments();

  bool empty() const { return scalers.empty(); }
  llvm::ArrayRef<Scaler> getScalers() const { return scalers; }
  mlir::Value scaleOf(unsigned request) const { return scalers[scalerOf[request]].getScale(); }
  /// Divides a gradient of \p request by its scale, where the builder stands. It keeps its type.
  mlir::Value unscale(unsigned request, mlir::Value gradient) const;

  /// Moves each scaler by the \p findings of its requests and returns its fields.
  void appendResults(llvm::ArrayRef<Finding> findings);

private:
  void appendResults(Scaler &chosen, llvm::ArrayRef<Finding> findings);

  StepEdit &edit;
  MicroSteps &microSteps;
  bool divides;
  llvm::SmallVector<Scaler> scalers;
  llvm::SmallVector<unsigned> scalerOf; ///< index of each request's scaler
};

} // namespace mpc
