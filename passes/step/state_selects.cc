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

void StateSelects::addSelects() {
  edit.builder.setInsertionPoint(edit.returnOp);
  StepSignature signature(edit.function);
  for (OpOperand &use : edit.returnOp->getOpOperands()) {
    std::optional<unsigned> argument = signature.argumentOf(use.getOperandNumber());
    Value old = argument ? edit.function.getArgument(*argument) : Value();
    Operation *definition = use.get().getDefiningOp();
    if (!old || old == use.get() || !definition || isa<GuardedUpdateOp>(definition) ||
        old.getType() != use.get().getType())
      continue;
    const UpdateKey &key = keys[use.getOperandNumber()];
    Value predicate = predicates.predicateOf(key);
    if (!predicate)
      continue;
    Value held = predicates.fallback(old, key);
    edit.builder.setInsertionPoint(edit.returnOp);
    use.set(SelectOp::create(edit.builder, edit.loc, old.getType(), predicate, use.get(), held));
  }
}

} // namespace mpc
