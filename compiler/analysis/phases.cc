#include "compiler/analysis/phases.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

// What an argument of a region stands for outside; any other value itself.
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
