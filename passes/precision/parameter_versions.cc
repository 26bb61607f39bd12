#include "passes/precision/parameter_versions.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

bool isOptimizer(Operation *op) { return isa<OptimizerOpInterface>(op); }

// The one optimizer that updates \p v, or null.
static Operation *optimizerOf(Value v) {
  Operation *found = nullptr;
  for (OpOperand &use : v.getUses())
    // Those inside a guard become part of the step once guards are flat.
    if (use.getOperandNumber() == 0 && isOptimizer(use.getOwner()) &&
        use.getOwner()->getBlock() == v.getParentBlock()) {
      if (found)
        return nullptr;
      found = use.getOwner();
    }
  return found;
}

SmallVector<ParameterVersions> findParameters(func::FuncOp function) {
  SmallVector<ParameterVersions> parameters;
  StepSignature signature(function);
  Operation *terminator = function.getBody().front().getTerminator();
  for (BlockArgument argument : function.getArguments()) {
    if (roleOf(argument) != Role::kParameter)
      continue;
    ParameterVersions parameter{argument, nameOf(argument).str(), {argument}, std::nullopt};
    while (Operation *optimizer = optimizerOf(parameter.values.back()))
      parameter.values.push_back(optimizer->getResult(0));
    std::optional<unsigned> result = signature.resultOf(argument.getArgNumber());
    if (parameter.isUpdated() && result && terminator->getOperand(*result) == parameter.values.back())
      parameter.result = result;
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

static void collectLowUses(Value v, bool parts, LowUse &path, SmallVector<LowUse> &found) {
  for (OpOperand &use : v.getUses()) {
    Operation *user = use.getOwner();
    if (user->getBlock() != v.getParentBlock())
      continue;
    if (isa<CastOp>(user) && isLow(elementOf(user->getResult(0)))) {
      found.push_back({user, path.movement});
      continue;
    }
    bool moves = has<Property::ReordersElements>(user) || (parts && has<Property::TakesParts>(user));
    if (!moves || use.getOperandNumber() != 0)
      continue;
    path.movement.push_back(user);
    collectLowUses(user->getResult(0), parts, path, found);
    path.movement.pop_back();
  }
}

SmallVector<LowUse> findLowUses(Value v, bool parts) {
  SmallVector<LowUse> found;
  if (!getElementTypeOrSelf(v.getType()).isF32())
    return found;
  LowUse path{};
  collectLowUses(v, parts, path, found);
  // Uses are listed last first.
  llvm::sort(found, [](const LowUse &a, const LowUse &b) { return a.cast->isBeforeInBlock(b.cast); });
  return found;
}

Type lowTypeOf(const LowUse &use) { return getElementTypeOrSelf(use.cast->getResult(0).getType()); }

void LowCopies::replace(const LowUse &use, Value low) {
  Type element = lowTypeOf(use);
  Value current = low;
  for (Operation *movement : use.movement) {
    Value &copy = moved[movement][element];
    if (!copy) {
      builder.setInsertionPoint(movement);
      Operation *clone = builder.clone(*movement);
      clone->setOperand(0, current);
      clone->getResult(0).setType(cast<RankedTensorType>(movement->getResult(0).getType()).clone(element));
      copy = clone->getResult(0);
    }
    current = copy;
  }
  use.cast->getResult(0).replaceAllUsesWith(current);
  use.cast->erase();
  for (Operation *movement : llvm::reverse(use.movement)) {
    if (!movement->use_empty())
      break;
    // The address may be that of another operation later.
    moved.erase(movement);
    movement->erase();
  }
}

} // namespace mpc
