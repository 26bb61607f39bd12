// The norms of gradients that finite checks take in, because they may overflow where gradients do not.
#pragma once

#include "passes/step/finite_checks.h"

namespace mpc {

/// Values that follow from gradients may overflow though the gradients are finite. Such values are a sum over several
/// losses or micro-steps, and the user's own arithmetic. Clipping would then make everything NaN, so the norm counts as
/// one more gradient.
///
/// A norm that follows from an update which the loss does not follow from comes too late for the check. So does one
/// that follows from the check itself, as where a scaler moves between two losses.
class CheckedNorms {
public:
  /// Finds the norms in a step that is not yet changed. \p takesMeans: gradients will be means over micro-steps or
  /// processes.
  CheckedNorms(StepEdit &edit, bool takesMeans);

  /// How many norms the check of \p request takes in.
  size_t countOf(unsigned request) const { return normsOf[request].size(); }
  /// Adds the norms to \p checks, which move behind them. Readers of gradients see what they are to see by then.
  void addTo(const FiniteChecks &checks);
  /// Adds the norms of \p request to \p check, which moves behind them with what follows from it.
  void addTo(AllFiniteOp check, unsigned request);

private:
  mlir::Value isFinite(GlobalNormOp norm);

  StepEdit &edit;
  llvm::SmallVector<llvm::SmallVector<GlobalNormOp, 1>> normsOf; ///< norms that the check of each request takes in
  llvm::DenseMap<mlir::Operation *, mlir::Value> flags;          ///< whether each norm is finite
};

} // namespace mpc
