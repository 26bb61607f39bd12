// What a step says of its checks and scales.
#pragma once

#include "passes/step/checked_norms.h"

namespace mpc {

/// Appends the records of a step and names what they count.
class StepRecords {
public:
  StepRecords(StepEdit &edit, const StepScalers &scalers, const FiniteChecks &checks, const CheckedNorms &norms)
      : edit(edit), scalers(scalers), checks(checks), norms(norms) {}

  /// Appends the records of each scaler and then the number of the micro-step. State results precede them.
  void appendResults(const MicroSteps &microSteps);

private:
  void appendRecords(const Scaler &chosen);
  void nameGradients(const std::string &record, llvm::ArrayRef<unsigned> requests);

  StepEdit &edit;
  const StepScalers &scalers;
  const FiniteChecks &checks;
  const CheckedNorms &norms;
  llvm::SmallVector<mlir::NamedAttribute> gradientNames; ///< what each record counts
};

} // namespace mpc
