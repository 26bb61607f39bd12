// What decides whether a state update happens, as a value of the step.
#pragma once

#include "passes/step/finite_checks.h"
#include "passes/step/update_groups.h"

namespace mpc {

/// The keys of updates and the predicates of keys. There is one predicate for each key.
class UpdatePredicates {
public:
  /// \p holds: state is held where a gradient is not finite.
  UpdatePredicates(StepEdit &edit, const FiniteChecks &checks, MicroSteps &microSteps, bool holds)
      : edit(edit), checks(checks), microSteps(microSteps), holds(holds) {}

  /// The key of a state update.
  UpdateKey keyOf(mlir::Operation *update) const;
  /// The key of state that follows from \p requests. \p followsUpdate: it follows from gradients or from optimizers.
  UpdateKey keyOf(RequestSet requests, bool followsUpdate) const;

  /// Null: always. The checks precede this.
  mlir::Value predicateOf(const UpdateKey &key);
  /// The value that state \p old keeps where the predicate of \p key is false.
  mlir::Value fallback(mlir::Value old, const UpdateKey &key);

private:
  RequestSet deciding(mlir::Operation *update) const;

  StepEdit &edit;
  const FiniteChecks &checks;
  MicroSteps &microSteps;
  bool holds;
  llvm::SmallVector<std::pair<UpdateKey, mlir::Value>> predicates;
};

} // namespace mpc
