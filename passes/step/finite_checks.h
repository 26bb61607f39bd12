// The finite check of each request of a step.
#pragma once

#include "passes/step/step_scalers.h"

namespace mpc {

class CheckedNorms;

/// The checks of a step, one a request. There are none where losses are not scaled.
class FiniteChecks {
public:
  /// \p norms will be added to the checks.
  FiniteChecks(StepEdit &edit, const StepScalers &scalers, MicroSteps &microSteps, const CheckedNorms &norms)
      : edit(edit), scalers(scalers), microSteps(microSteps), norms(norms) {}

  /// Makes the scale of each request its seed, and checks it.
  void addChecks();
  /// Lets the finding of \p request hold where \p sums of its gradients are finite, too: those over all micro-steps and
  /// processes. \p areScaled: by the scale of the request. All processes have the same sums, so that they find the
  /// same. The builder stands behind the sums.
  void addCheckOfSums(unsigned request, llvm::ArrayRef<mlir::Value> sums, bool areScaled);

  llvm::ArrayRef<AllFiniteOp> getChecks() const { return checks; }
  /// What the check of each request found, in all micro-steps so far.
  llvm::ArrayRef<Finding> getFindings() const { return findings; }
  /// The last operation of what \p request and its check add to the step.
  mlir::Operation *endOf(unsigned request) const;

private:
  void addCheck(const GradientRequest &asked, unsigned request);

  StepEdit &edit;
  const StepScalers &scalers;
  MicroSteps &microSteps;
  const CheckedNorms &norms;
  llvm::SmallVector<AllFiniteOp> checks;
  llvm::SmallVector<Finding> findings;
};

} // namespace mpc
