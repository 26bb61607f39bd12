// The choice of state that no guarded update computes.
#pragma once

#include "passes/step/update_predicates.h"

namespace mpc {

/// Chooses between new and old values of state results at the end of a step.
class StateSelects {
public:
  /// Finds what decides each result of a step that is not yet changed.
  StateSelects(StepEdit &edit, UpdatePredicates &predicates);

  /// Adds the choices behind the guarded updates.
  void addSelects();

private:
  StepEdit &edit;
  UpdatePredicates &predicates;
  llvm::SmallVector<UpdateKey> keys; ///< the key of each result
};

} // namespace mpc
