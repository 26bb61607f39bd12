#include "compiler/analysis/phases.h"

#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

static bool isInNetwork(Operation *Op) {
  ScopeAttr Scope = scopeOf(Op);
  return Scope && Scope.getNetwork();
}

// A choice between whole tensors: outside the network the new state or the old one.
static bool choosesState(Operation *Op) {
  auto Choice = dyn_cast<SelectOp>(Op);
  return Choice && cast<ShapedType>(Choice.getCondition().getType()).getNumElements() == 1;
}

// Whether the phase comes after the backward pass. Check and scale are left out, because they read losses as well.
static bool isOfUpdates(Phase P) {
  return P == Phase::kSkip || P == Phase::kUnscale || P == Phase::kClip || P == Phase::kUpdate;
}

// The phase of the first operation of \p Region, movement and casts aside, where each has one of its own.
static std::optional<Phase> ownPhaseOfRegion(FusionOp Region) {
  std::optional<Phase> Found;
  for (Operation &Op : Region.getBody().front().without_terminator()) {
    if (isMovementOrCast(&Op) || isViewOrConstant(&Op))
      continue;
    std::optional<Phase> Own = ownPhase(&Op);
    if (!Own)
      return std::nullopt;
    if (!Found)
      Found = Own;
  }
  return Found;
}

// The phase of an operation, where it does not depend on neighbours.
static std::optional<Phase> settledPhase(Operation *Op) {
  if (std::optional<Phase> Own = ownPhase(Op))
    return Own;
  if (isBackwardOp(Op) || has<Property::GradientOp>(Op))
    return Phase::kBackward;
  if (auto Region = dyn_cast<FusionOp>(Op)) {
    if (std::optional<Phase> Own = ownPhaseOfRegion(Region))
      return Own;
    bool InNetwork = llvm::any_of(Region.getBody().front(), [](Operation &Nested) { return isInNetwork(&Nested); });
    return InNetwork ? std::optional(Phase::kForward) : std::nullopt;
  }
  if (isInNetwork(Op))
    return Phase::kForward;
  return choosesState(Op) ? std::optional(Phase::kSkip) : std::nullopt;
}

StepPhases::StepPhases(func::FuncOp Function) : Body(Function.getBody().front()) {
  for (unsigned Result : llvm::seq(Function.getNumResults()))
    BecomesState.push_back(isState(resultRole(Function, Result)));
  // Readers first, so that what updates alone read is for them, then what reads results of the step's end.
  for (Operation &Op : llvm::reverse(Body.without_terminator()))
    Phases[&Op] = settledPhase(&Op).value_or(isForUpdates(&Op) ? Phase::kUpdate : Phase::kForward);
  for (Operation &Op : Body.without_terminator())
    if (Phases.lookup(&Op) == Phase::kForward && !settledPhase(&Op) && readsUpdates(&Op))
      Phases[&Op] = Phase::kUpdate;
}

bool StepPhases::isForUpdates(Operation *Op) const {
  bool IsRead = false;
  for (OpOperand &Use : Op->getUses()) {
    Operation *User = Body.findAncestorOpInBlock(*Use.getOwner());
    bool IsResult = User == Body.getTerminator();
    // Records, and what a check reads beside others, decide nothing.
    if ((IsResult && !BecomesState[Use.getOperandNumber()]) || (!IsResult && of(User) == Phase::kCheck))
      continue;
    if (!IsResult && !isOfUpdates(of(User)))
      return false;
    IsRead = true;
  }
  return IsRead;
}

bool StepPhases::readsUpdates(Operation *Op) const {
  return llvm::any_of(Op->getOperands(), [&](Value Operand) {
    Operation *Producer = Operand.getDefiningOp();
    return Producer && (isOfUpdates(of(Producer)) || of(Producer) == Phase::kCheck);
  });
}

// The value outside that an argument of a region stands for; any other value itself.
static Value behindRegion(Value V) {
  auto Argument = dyn_cast<BlockArgument>(V);
  auto Fusion = Argument ? dyn_cast<FusionOp>(Argument.getOwner()->getParentOp()) : FusionOp();
  return Fusion ? Fusion.getInputs()[Argument.getArgNumber()] : V;
}

bool isBackwardOp(Operation *Op) {
  if (isMarkedBackward(Op))
    return true;
  if (auto Fusion = dyn_cast<FusionOp>(Op))
    return llvm::any_of(Fusion.getBody().front(), [](Operation &Nested) { return isBackwardOp(&Nested); });
  // Passes leave no mark on what they put behind a cotangent.
  Operation *Source = isMovementOrCast(Op) ? behindRegion(Op->getOperand(0)).getDefiningOp() : nullptr;
  if (Source && !isa<FusionOp>(Source))
    return isBackwardOp(Source);
  return Source && !isForwardResult(cast<OpResult>(behindRegion(Op->getOperand(0))));
}

bool isForwardResult(OpResult Result) {
  auto Fusion = dyn_cast<FusionOp>(Result.getOwner());
  if (!Fusion)
    return !isBackwardOp(Result.getOwner());
  Value Yielded = Fusion.getBody().front().getTerminator()->getOperand(Result.getResultNumber());
  Operation *Producer = behindViews(Yielded).getDefiningOp();
  return Producer && !isBackwardOp(Producer);
}

// Whether a result of the region that is none of the backward pass is computed from a value inside.
static bool reachesForwardResult(Value V, llvm::SmallPtrSetImpl<Operation *> &Seen) {
  return llvm::any_of(V.getUsers(), [&](Operation *User) {
    if (isa<YieldOp>(User))
      return true;
    if (!Seen.insert(User).second || isBackwardOp(User))
      return false;
    return llvm::any_of(User->getResults(), [&](Value Result) { return reachesForwardResult(Result, Seen); });
  });
}

bool isReadBackward(OpOperand &Use) {
  if (!isBackwardOp(Use.getOwner()))
    return false;
  auto Fusion = dyn_cast<FusionOp>(Use.getOwner());
  llvm::SmallPtrSet<Operation *, 16> Seen;
  return !Fusion || !reachesForwardResult(Fusion.getBody().getArgument(Use.getOperandNumber()), Seen);
}

bool isMovementOrCast(Operation *Op) { return has<Property::Movement>(Op) || isa<CastOp>(Op); }

bool isReadBackward(Value V) {
  return llvm::any_of(V.getUses(), [](OpOperand &Use) {
    if (auto View = dyn_cast<ViewLikeOpInterface>(Use.getOwner()); View && !isBackwardOp(View))
      return isReadBackward(View.getViewDest());
    return isReadBackward(Use);
  });
}

llvm::SetVector<Value> savedValues(Block &Body) {
  llvm::SetVector<Value> Saved;
  for (Operation &Op : Body.without_terminator()) {
    if (isViewOrConstant(&Op))
      continue;
    for (OpResult Result : Op.getResults())
      if (isForwardResult(Result) && isReadBackward(Result))
        Saved.insert(Result);
  }
  return Saved;
}

} // namespace mpc
