// Adds norms to a step's finite checks, because they may overflow where gradients do not.
#include "passes/step/step_wrap.h"

using namespace mlir;

namespace mpc {

// Whether \p V is finite where a finite check passes: then its squares are, in f64.
static bool isChecked(Value V, ArrayRef<GradientRequest> Requests) {
  if (auto Clamp = V.getDefiningOp<ClampOp>())
    V = Clamp.getX();
  return getElementTypeOrSelf(V.getType()).isF32() &&
         llvm::any_of(Requests, [&](const GradientRequest &Asked) { return llvm::is_contained(Asked.Gradients, V); });
}

static bool reachesUpdate(Operation *From) {
  llvm::SetVector<Operation *> Reached;
  Reached.insert(From);
  for (size_t Next = 0; Next < Reached.size(); ++Next)
    for (Operation *User : Reached[Next]->getUsers()) {
      if (User->hasTrait<StateUpdate>())
        return true;
      Reached.insert(User);
    }
  return false;
}

// Values that follow from gradients may overflow though the gradients are finite. Such values are a sum over several
// losses or micro-steps, and the user's own arithmetic. Clipping would then make everything NaN, so the norm counts as
// one more gradient.
//
// A norm that follows from an update which the loss does not follow from comes too late for the check.
void StepWrap::collectNorms() {
  NormsOf.resize(Flow.requests().size());
  for (auto Norm : Function.getBody().front().getOps<GlobalNormOp>()) {
    bool IsChecked = !accumulates() && llvm::all_of(Norm.getGradients(), [&](Value Gradient) {
      return isChecked(Gradient, Flow.requests());
    });
    if (IsChecked || !reachesUpdate(Norm))
      continue;
    for (unsigned Request = 0; Request < Flow.requests().size(); ++Request)
      if (Flow.gradientsInto(Norm.getNorm()).test(Request) && Flow.precedesUpdatesOf(Norm, Request))
        NormsOf[Request].push_back(Norm);
  }
}

Value StepWrap::isFinite(GlobalNormOp Norm) {
  Value &Flag = NormFlags[Norm];
  if (Flag)
    return Flag;
  Builder.setInsertionPointAfter(Norm);
  auto Scalar = RankedTensorType::get({}, Builder.getF32Type());
  Value One = ConstantOp::create(Builder, Loc, Scalar, DenseElementsAttr::get(Scalar, Builder.getF32FloatAttr(1)));
  Flag = CheckFiniteOp::create(Builder, Loc, RankedTensorType::get({}, Builder.getI1Type()), Norm.getNorm(), One);
  return Flag;
}

void StepWrap::checkNorms(unsigned Request) {
  AllFiniteOp Check = Checks[Request];
  Operation *Last = Check;
  for (GlobalNormOp Norm : NormsOf[Request]) {
    Value Flag = isFinite(Norm);
    Check.getGradientsMutable().append(Flag);
    if (Last->isBeforeInBlock(Flag.getDefiningOp()))
      Last = Flag.getDefiningOp();
  }
  if (Last == Check)
    return;
  // Move the check with what follows from it: no update reads it yet.
  llvm::SetVector<Operation *> Follows;
  Follows.insert(Check);
  for (Operation &Op : llvm::make_range(Check->getIterator(), Last->getIterator()))
    if (llvm::any_of(Op.getOperands(), [&](Value V) { return Follows.contains(V.getDefiningOp()); }))
      Follows.insert(&Op);
  for (Operation *Op : Follows) {
    Op->moveAfter(Last);
    Last = Op;
  }
}

} // namespace mpc
