// Guarded updates.
//
//   %w2, %v2 = mpc.momentum %w, %v, %dw, %rate : ...
//   %mean2, %variance2 = mpc.batch_norm_running_update %mean, %variance, %m, %s {count = 8} : ...
// becomes
//   %new:4 = mpc.guarded_update %finite else(%w, %v, %mean, %variance) {
//     %u = mpc.unscale %dw, %scale : ...
//     %w2, %v2 = mpc.momentum %w, %v, %u, %rate : ...
//     %mean2, %variance2 = mpc.batch_norm_running_update %mean, %variance, %m, %s {count = 8} : ...
//     mpc.yield %w2, %v2, %mean2, %variance2 : ...
//   } : ...
//
// In micro-steps the optimizer and the statistics have a guarded update each. Statistics fall back to what they were
// before the first one:
//   %old_mean = mpc.select %is_first, %mean, %backup_of_mean : ...
//   %new:2 = mpc.guarded_update %finite_so_far else(%old_mean, %old_variance) {
#include "passes/step/update_guards.h"

using namespace mlir;

namespace mpc {

UpdateGuards::UpdateGuards(StepEdit &edit, const StepScalers &scalers, UpdatePredicates &predicates)
    : edit(edit), scalers(scalers), predicates(predicates),
      regions(edit.getBody(), edit.flow, [&](Operation *update) { return predicates.keyOf(update); }) {}

void UpdateGuards::addGuards() {
  for (const UpdateGroup &region : regions.getRegions())
    guard(region);
}

void UpdateGuards::guard(const UpdateGroup &region) {
  Value predicate = predicates.predicateOf(region.key);
  SmallVector<Value> updated, old;
  SmallVector<Type> types;
  for (Operation *op : region.updates)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !region.updates.contains(user); })) {
        Value before = result;
        while (region.updates.contains(before.getDefiningOp()))
          before = before.getDefiningOp()->getOperand(cast<OpResult>(before).getResultNumber());
        updated.push_back(result);
        old.push_back(predicates.fallback(before, region.key));
        types.push_back(result.getType());
      }

  Operation *latest = latestInput(region, predicate);
  for (Value held : old)
    latest = later(latest, held.getDefiningOp());
  edit.builder.setInsertionPointAfter(latest);
  auto guard = GuardedUpdateOp::create(edit.builder, edit.loc, types, predicate, old);
  moveFollowing(region, guard);
  Block *body = edit.builder.createBlock(&guard.getBody());
  moveUpdates(region, body);
  for (auto [result, value] : llvm::zip_equal(guard.getResults(), updated))
    value.replaceUsesWithIf(result, [&](OpOperand &use) { return use.getOwner()->getBlock() != body; });
  edit.builder.setInsertionPointToEnd(body);
  YieldOp::create(edit.builder, edit.loc, updated);
}

// Each gradient is unscaled once, before the first update that reads it.
void UpdateGuards::moveUpdates(const UpdateGroup &region, Block *body) {
  llvm::DenseMap<Value, Value> unscaledInside;
  for (Operation *op : region.updates) {
    op->moveBefore(body, body->end());
    for (OpOperand &use : op->getOpOperands())
      for (auto [request, asked] : llvm::enumerate(edit.getRequests())) {
        if (!llvm::is_contained(asked.gradients, use.get()))
          continue;
        Value &unscaled = unscaledInside[use.get()];
        if (!unscaled) {
          edit.builder.setInsertionPoint(op);
          unscaled = scalers.unscale(request, use.get());
        }
        use.set(unscaled);
        break;
      }
  }
}

// Moves operations that read the updates, directly or not, behind the region.
void UpdateGuards::moveFollowing(const UpdateGroup &region, Operation *guard) {
  llvm::SetVector<Operation *> follows;
  for (Operation &op : llvm::make_range(guard->getBlock()->begin(), guard->getIterator())) {
    if (region.updates.contains(&op))
      continue;
    bool reads = llvm::any_of(op.getOperands(), [&](Value v) {
      Operation *definition = v.getDefiningOp();
      return definition && (region.updates.contains(definition) || follows.contains(definition));
    });
    if (reads)
      follows.insert(&op);
  }
  Operation *last = guard;
  for (Operation *op : follows) {
    op->moveAfter(last);
    last = op;
  }
}

// The last operation that must precede the region.
Operation *UpdateGuards::latestInput(const UpdateGroup &region, Value predicate) {
  Operation *latest = predicate.getDefiningOp();
  for (Operation *op : region.updates)
    for (Value operand : op->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (definition && !region.updates.contains(definition))
        latest = later(latest, definition);
    }
  return latest;
}

} // namespace mpc
