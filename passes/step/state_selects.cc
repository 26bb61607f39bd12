// Choices of state.
//
//   %average2 = mpc.add %average, %new#0 : tensor<4xf32>
//   return %average2 : tensor<4xf32>
// becomes
//   %average2 = mpc.add %average, %new#0 : tensor<4xf32>
//   %average3 = mpc.select %finite, %average2, %average : ...
//   return %average3 : tensor<4xf32>
#include "passes/step/state_selects.h"

#include "compiler/dialect/step_signature.h"

using namespace mlir;

namespace mpc {

StateSelects::StateSelects(StepEdit &edit, UpdatePredicates &predicates) : edit(edit), predicates(predicates) {
  for (Value result : edit.returnOp.getOperands()) {
    bool followsUpdate = false;
    RequestSet requests = edit.flow.behind(result, followsUpdate);
    keys.push_back(predicates.keyOf(requests, followsUpdate));
  }
}

// The state that the guards in front of `updated` hold.
static Value heldByGuards(Value updated) {
  while (auto guard = updated.getDefiningOp<GuardedUpdateOp>())
    updated = guard.getOld()[cast<OpResult>(updated).getResultNumber()];
  return updated;
}

void StateSelects::addSelects() {
  edit.builder.setInsertionPoint(edit.returnOp);
  StepSignature signature(edit.function);
  for (OpOperand &use : edit.returnOp->getOpOperands()) {
    std::optional<unsigned> argument = signature.argumentOf(use.getOperandNumber());
    Value old = argument ? edit.function.getArgument(*argument) : Value();
    if (!old || old.getType() != use.get().getType())
      continue;
    // An update of this very state holds it. That of what was assigned to it, or of another state, does not.
    Value held = heldByGuards(use.get());
    const UpdateKey &key = keys[use.getOperandNumber()];
    if (held == old || (held != use.get() && held == predicates.fallback(old, key)))
      continue;
    Value predicate = predicates.predicateOf(key);
    if (!predicate)
      continue;
    held = predicates.fallback(old, key);
    edit.builder.setInsertionPoint(edit.returnOp);
    use.set(SelectOp::create(edit.builder, edit.loc, old.getType(), predicate, use.get(), held));
  }
}

} // namespace mpc
