// Adds norms to a step's finite checks, because they may overflow where gradients do not.
#include "passes/step/step_wrap.h"

using namespace mlir;

namespace mpc {

// Whether \p v is finite where a finite check passes: then its squares are, in f64.
static bool isCheckedGradient(Value v, ArrayRef<GradientRequest> requests) {
  if (auto clamp = v.getDefiningOp<ClampOp>())
    v = clamp.getX();
  return getElementTypeOrSelf(v.getType()).isF32() &&
         llvm::any_of(requests, [&](const GradientRequest &asked) { return llvm::is_contained(asked.gradients, v); });
}

static bool reachesUpdate(Operation *from) {
  llvm::SetVector<Operation *> reached;
  reached.insert(from);
  for (size_t next = 0; next < reached.size(); ++next)
    for (Operation *user : reached[next]->getUsers()) {
      if (user->hasTrait<StateUpdate>())
        return true;
      reached.insert(user);
    }
  return false;
}

// Values that follow from gradients may overflow though the gradients are finite. Such values are a sum over several
// losses or micro-steps, and the user's own arithmetic. Clipping would then make everything NaN, so the norm counts as
// one more gradient.
//
// A norm that follows from an update which the loss does not follow from comes too late for the check.
void StepWrap::collectNorms() {
  normsOf.resize(flow.getRequests().size());
  for (auto norm : function.getBody().front().getOps<GlobalNormOp>()) {
    bool isChecked = !accumulates() && llvm::all_of(norm.getGradients(), [&](Value gradient) {
      return isCheckedGradient(gradient, flow.getRequests());
    });
    if (isChecked || !reachesUpdate(norm))
      continue;
    for (unsigned request = 0; request < flow.getRequests().size(); ++request)
      if (flow.gradientsInto(norm.getNorm()).test(request) && flow.precedesUpdatesOf(norm, request))
        normsOf[request].push_back(norm);
  }
}

Value StepWrap::isFinite(GlobalNormOp norm) {
  Value &flag = normFlags[norm];
  if (flag)
    return flag;
  builder.setInsertionPointAfter(norm);
  auto scalar = RankedTensorType::get({}, builder.getF32Type());
  Value one = ConstantOp::create(builder, loc, scalar, DenseElementsAttr::get(scalar, builder.getF32FloatAttr(1)));
  flag = CheckFiniteOp::create(builder, loc, RankedTensorType::get({}, builder.getI1Type()), norm.getNorm(), one);
  return flag;
}

void StepWrap::checkNorms(unsigned request) {
  AllFiniteOp check = checks[request];
  Operation *last = check;
  for (GlobalNormOp norm : normsOf[request]) {
    Value flag = isFinite(norm);
    check.getGradientsMutable().append(flag);
    if (last->isBeforeInBlock(flag.getDefiningOp()))
      last = flag.getDefiningOp();
  }
  if (last == check)
    return;
  // Move the check with what follows from it: no update reads it yet.
  llvm::SetVector<Operation *> follows;
  follows.insert(check);
  for (Operation &op : llvm::make_range(check->getIterator(), last->getIterator()))
    if (llvm::any_of(op.getOperands(), [&](Value v) { return follows.contains(v.getDefiningOp()); }))
      follows.insert(&op);
  for (Operation *op : follows) {
    op->moveAfter(last);
    last = op;
  }
}

} // namespace mpc
