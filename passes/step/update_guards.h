// The guarded updates of a step.
#pragma once

#include "passes/step/update_predicates.h"

namespace mpc {

/// Moves state updates into one guarded update for each region.
class UpdateGuards {
public:
  /// Groups the updates of a step that is not yet changed.
  UpdateGuards(StepEdit &edit, const StepScalers &scalers, UpdatePredicates &predicates);

  /// Whether \p op moves into a guarded update. There it reads unscaled gradients.
  bool contains(mlir::Operation *op) const { return regions.contains(op); }
  void addGuards();

private:
  void guard(const UpdateGroup &region);
  void moveFollowing(const UpdateGroup &region, mlir::Operation *guard);
  void moveUpdates(const UpdateGroup &region, mlir::Block *body);
  mlir::Operation *latestInput(const UpdateGroup &region, mlir::Value predicate);

  StepEdit &edit;
  const StepScalers &scalers;
  UpdatePredicates &predicates;
  UpdateGroups regions;
};

} // namespace mpc
