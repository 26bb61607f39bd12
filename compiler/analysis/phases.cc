#include "compiler/analysis/phases.h"

#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

static bool isInNetwork(Operation *op) {
  ScopeAttr scope = scopeOf(op);
  return scope && scope.getNetwork();
}

// A choice between whole tensors: outside the network the new state or the old one.
static bool choosesState(Operation *op) {
  auto choice = dyn_cast<SelectOp>(op);
  return choice && cast<ShapedType>(choice.getCondition().getType()).getNumElements() == 1;
}

// Whether the phase comes after the backward pass. Check and scale are left out, because they read losses as well.
static bool isOfUpdates(Phase p) {
  return p == Phase::kSkip || p == Phase::kUnscale || p == Phase::kClip || p == Phase::kUpdate;
}

// The phase of the first operation of \p region, movement and casts aside, where each has one of its own.
static std::optional<Phase> ownPhaseOfRegion(FusionOp region) {
  std::optional<Phase> found;
  for (Operation &op : region.getBody().front().without_terminator()) {
    if (isMovementOrCast(&op) || isViewOrConstant(&op))
      continue;
    std::optional<Phase> own = ownPhase(&op);
    if (!own)
      return std::nullopt;
    if (!found)
      found = own;
  }
  return found;
}

// The phase of an operation, where it does not depend on neighbours.
static std::optional<Phase> settledPhase(Operation *op) {
  if (std::optional<Phase> own = ownPhase(op))
    return own;
  if (isBackwardOp(op) || has<Property::GradientOp>(op))
    return Phase::kBackward;
  if (auto region = dyn_cast<FusionOp>(op)) {
    if (std::optional<Phase> own = ownPhaseOfRegion(region))
      return own;
    bool inNetwork = llvm::any_of(region.getBody().front(), [](Operation &nested) { return isInNetwork(&nested); });
    return inNetwork ? std::optional(Phase::kForward) : std::nullopt;
  }
  if (isInNetwork(op))
    return Phase::kForward;
  return choosesState(op) ? std::optional(Phase::kSkip) : std::nullopt;
}

StepPhases::StepPhases(func::FuncOp function) : body(function.getBody().front()) {
  for (unsigned result : llvm::seq(function.getNumResults()))
    becomesState.push_back(isState(resultRole(function, result)));
  // Readers first, so that what updates alone read is for them, then what reads results of the step's end.
  for (Operation &op : llvm::reverse(body.without_terminator()))
    phases[&op] = settledPhase(&op).value_or(isForUpdates(&op) ? Phase::kUpdate : Phase::kForward);
  for (Operation &op : body.without_terminator())
    if (phases.lookup(&op) == Phase::kForward && !settledPhase(&op) && readsUpdates(&op))
      phases[&op] = Phase::kUpdate;
}

bool StepPhases::isForUpdates(Operation *op) const {
  bool isRead = false;
  for (OpOperand &use : op->getUses()) {
    Operation *user = body.findAncestorOpInBlock(*use.getOwner());
    bool isResult = user == body.getTerminator();
    // Records, and what a check reads beside others, decide nothing.
    if ((isResult && !becomesState[use.getOperandNumber()]) || (!isResult && phaseOf(user) == Phase::kCheck))
      continue;
    if (!isResult && !isOfUpdates(phaseOf(user)))
      return false;
    isRead = true;
  }
  return isRead;
}

bool StepPhases::readsUpdates(Operation *op) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    return producer && (isOfUpdates(phaseOf(producer)) || phaseOf(producer) == Phase::kCheck);
  });
}

// The value outside that an argument of a region stands for; any other value itself.
static Value behindRegion(Value v) {
  auto argument = dyn_cast<BlockArgument>(v);
  auto fusion = argument ? dyn_cast<FusionOp>(argument.getOwner()->getParentOp()) : FusionOp();
  return fusion ? fusion.getInputs()[argument.getArgNumber()] : v;
}

bool isBackwardOp(Operation *op) {
  if (isMarkedBackward(op))
    return true;
  if (auto fusion = dyn_cast<FusionOp>(op))
    return llvm::any_of(fusion.getBody().front(), [](Operation &nested) { return isBackwardOp(&nested); });
  // Passes leave no mark on what they put behind a cotangent.
  Operation *source = isMovementOrCast(op) ? behindRegion(op->getOperand(0)).getDefiningOp() : nullptr;
  if (source && !isa<FusionOp>(source))
    return isBackwardOp(source);
  return source && !isForwardResult(cast<OpResult>(behindRegion(op->getOperand(0))));
}

bool isForwardResult(OpResult result) {
  auto fusion = dyn_cast<FusionOp>(result.getOwner());
  if (!fusion)
    return !isBackwardOp(result.getOwner());
  Value yielded = fusion.getBody().front().getTerminator()->getOperand(result.getResultNumber());
  Operation *producer = behindViews(yielded).getDefiningOp();
  return producer && !isBackwardOp(producer);
}

// Whether a result of the region that is none of the backward pass is computed from a value inside.
static bool reachesForwardResult(Value v, llvm::SmallPtrSetImpl<Operation *> &seen) {
  return llvm::any_of(v.getUsers(), [&](Operation *user) {
    if (isa<YieldOp>(user))
      return true;
    if (!seen.insert(user).second || isBackwardOp(user))
      return false;
    return llvm::any_of(user->getResults(), [&](Value result) { return reachesForwardResult(result, seen); });
  });
}

bool isReadBackward(OpOperand &use) {
  if (!isBackwardOp(use.getOwner()))
    return false;
  auto fusion = dyn_cast<FusionOp>(use.getOwner());
  llvm::SmallPtrSet<Operation *, 16> seen;
  return !fusion || !reachesForwardResult(fusion.getBody().getArgument(use.getOperandNumber()), seen);
}

bool isMovementOrCast(Operation *op) { return has<Property::Movement>(op) || isa<CastOp>(op); }

bool isReadBackward(Value v) {
  return llvm::any_of(v.getUses(), [](OpOperand &use) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(use.getOwner()); view && !isBackwardOp(view))
      return isReadBackward(view.getViewDest());
    return isReadBackward(use);
  });
}

llvm::SetVector<Value> savedValues(Block &body) {
  llvm::SetVector<Value> saved;
  for (Operation &op : body.without_terminator()) {
    if (isViewOrConstant(&op))
      continue;
    for (OpResult result : op.getResults())
      if (isForwardResult(result) && isReadBackward(result))
        saved.insert(result);
  }
  return saved;
}

} // namespace mpc
