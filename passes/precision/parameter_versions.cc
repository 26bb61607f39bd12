#include "passes/precision/parameter_versions.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

bool isOptimizer(Operation *Op) { return isa<OptimizerOpInterface>(Op); }

// The one optimizer that updates \p V, or null.
static Operation *optimizerOf(Value V) {
  Operation *Found = nullptr;
  for (OpOperand &Use : V.getUses())
    // Those inside a guard become part of the step once guards are flat.
    if (Use.getOperandNumber() == 0 && isOptimizer(Use.getOwner()) &&
        Use.getOwner()->getBlock() == V.getParentBlock()) {
      if (Found)
        return nullptr;
      Found = Use.getOwner();
    }
  return Found;
}

SmallVector<ParameterVersions> findParameters(func::FuncOp Function) {
  SmallVector<ParameterVersions> Parameters;
  StepSignature Signature(Function);
  Operation *Return = Function.getBody().front().getTerminator();
  for (BlockArgument Argument : Function.getArguments()) {
    if (roleOf(Argument) != Role::kParameter)
      continue;
    ParameterVersions Parameter{Argument, nameOf(Argument).str(), {Argument}, std::nullopt};
    while (Operation *Optimizer = optimizerOf(Parameter.Values.back()))
      Parameter.Values.push_back(Optimizer->getResult(0));
    std::optional<unsigned> Result = Signature.resultOf(Argument.getArgNumber());
    if (Parameter.isUpdated() && Result && Return->getOperand(*Result) == Parameter.Values.back())
      Parameter.Result = Result;
    Parameters.push_back(std::move(Parameter));
  }
  return Parameters;
}

static void collectLowUses(Value V, bool Parts, LowUse &Path, SmallVector<LowUse> &Found) {
  for (OpOperand &Use : V.getUses()) {
    Operation *User = Use.getOwner();
    if (User->getBlock() != V.getParentBlock())
      continue;
    if (isa<CastOp>(User) && isLow(elementOf(User->getResult(0)))) {
      Found.push_back({User, Path.Movement});
      continue;
    }
    bool Moves = has<Property::ReordersElements>(User) || (Parts && has<Property::TakesParts>(User));
    if (!Moves || Use.getOperandNumber() != 0)
      continue;
    Path.Movement.push_back(User);
    collectLowUses(User->getResult(0), Parts, Path, Found);
    Path.Movement.pop_back();
  }
}

SmallVector<LowUse> findLowUses(Value V, bool Parts) {
  SmallVector<LowUse> Found;
  if (!getElementTypeOrSelf(V.getType()).isF32())
    return Found;
  LowUse Path{};
  collectLowUses(V, Parts, Path, Found);
  // Uses are listed last first.
  llvm::sort(Found, [](const LowUse &A, const LowUse &B) { return A.Cast->isBeforeInBlock(B.Cast); });
  return Found;
}

Type lowTypeOf(const LowUse &Use) { return getElementTypeOrSelf(Use.Cast->getResult(0).getType()); }

void LowCopies::replace(const LowUse &Use, Value Low) {
  Type Element = lowTypeOf(Use);
  Value Current = Low;
  for (Operation *Movement : Use.Movement) {
    Value &Copy = Moved[Movement][Element];
    if (!Copy) {
      Builder.setInsertionPoint(Movement);
      Operation *Clone = Builder.clone(*Movement);
      Clone->setOperand(0, Current);
      Clone->getResult(0).setType(cast<RankedTensorType>(Movement->getResult(0).getType()).clone(Element));
      Copy = Clone->getResult(0);
    }
    Current = Copy;
  }
  Use.Cast->getResult(0).replaceAllUsesWith(Current);
  Use.Cast->erase();
  for (Operation *Movement : llvm::reverse(Use.Movement)) {
    if (!Movement->use_empty())
      break;
    // The address may be that of another operation later.
    Moved.erase(Movement);
    Movement->erase();
  }
}

} // namespace mpc
