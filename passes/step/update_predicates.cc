// Predicates of state updates. Here an optimizer follows two losses, and the generator's counter follows none.
//
//   %finite0, %first_bad0 = mpc.all_finite %scale, %l0, %dw0 : ...
//   %finite1, %first_bad1 = mpc.all_finite %scale, %l1, %dw1 : ...
// becomes
//   %finite0, %first_bad0 = mpc.all_finite %scale, %l0, %dw0 : ...
//   %finite1, %first_bad1 = mpc.all_finite %scale, %l1, %dw1 : ...
//   %of_optimizer = mpc.all_of %finite0, %finite1 : tensor<i1>
//   %of_counter = mpc.any_of %finite0, %finite1 : tensor<i1>
//
// In micro-steps the optimizer also waits for the last one:
//   %of_optimizer = mpc.all_of %is_last, %finite0, %finite1 : tensor<i1>
#include "passes/step/update_predicates.h"

using namespace mlir;

namespace mpc {

// In one process that accumulates there is one backup of a statistic, so all its updates hold together.
RequestSet UpdatePredicates::deciding(Operation *update) const {
  RequestSet set = edit.flow.deciding(update);
  if (!microSteps.tellsLast() || !isa<BatchNormRunningUpdateOp>(update))
    return set;
  Value state = stateBefore(update->getResult(0));
  for (auto other : update->getBlock()->getOps<BatchNormRunningUpdateOp>())
    if (stateBefore(other->getResult(0)) == state)
      set |= edit.flow.deciding(other);
  return set;
}

UpdateKey UpdatePredicates::keyOf(Operation *update) const {
  return keyOf(deciding(update), edit.flow.isOptimizer(update));
}

UpdateKey UpdatePredicates::keyOf(RequestSet requests, bool followsUpdate) const {
  unsigned count = edit.getRequests().size();
  UpdateKey key;
  key.requests = RequestSet(count);
  key.last = microSteps.tellsLast() && followsUpdate;
  if (!holds)
    return key;
  requests.resize(count);
  if (count == 1)
    requests.set(0);
  key.requests = requests;
  key.any = requests.none();
  return key;
}

Value UpdatePredicates::predicateOf(const UpdateKey &key) {
  for (auto &[known, predicate] : predicates)
    if (known == key)
      return predicate;
  SmallVector<Value> chosen;
  for (auto [request, found] : llvm::enumerate(checks.getFindings()))
    if (key.any || key.requests.test(request))
      chosen.push_back(found.finite);
  if (key.any && !chosen.empty())
    chosen = {reduceFlags(edit.builder, chosen, /*any=*/true, edit.loc)};
  if (key.last)
    chosen.insert(chosen.begin(), microSteps.getLast());
  Value predicate = chosen.empty() ? Value() : reduceFlags(edit.builder, chosen, /*any=*/false, edit.loc);
  predicates.push_back({key, predicate});
  return predicate;
}

// State that every micro-step moves falls back to what it was before the first one.
Value UpdatePredicates::fallback(Value old, const UpdateKey &key) {
  return key.last ? old : microSteps.beforeFirst(old);
}

} // namespace mpc
