// Norms in finite checks.
//
//   %finite, %first_bad = mpc.all_finite %scale, %l, %dw : ...
//   %u = mpc.unscale %dw, %scale : ...
//   %square = mpc.mul %u, %u : tensor<4xf32>
//   %norm = mpc.global_norm %square : ...
//   %clipped = mpc.clip_by_norm %square, %norm {max_norm = 1.0} : ...
// becomes
//   %u = mpc.unscale %dw, %scale : ...
//   %square = mpc.mul %u, %u : tensor<4xf32>
//   %norm = mpc.global_norm %square : ...
//   %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
//   %ok = mpc.check_finite %norm, %one : ...
//   %finite, %first_bad = mpc.all_finite %scale, %l, %dw, %ok : ...
//   %clipped = mpc.clip_by_norm %square, %norm {max_norm = 1.0} : ...
#include "passes/step/checked_norms.h"

#include "llvm/ADT/SetVector.h"

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

CheckedNorms::CheckedNorms(StepEdit &edit, const MicroSteps &microSteps) : edit(edit) {
  normsOf.resize(edit.getRequests().size());
  for (auto norm : edit.getBody().getOps<GlobalNormOp>()) {
    bool isChecked = !microSteps.accumulates() && llvm::all_of(norm.getGradients(), [&](Value gradient) {
      return isCheckedGradient(gradient, edit.getRequests());
    });
    if (isChecked || !reachesUpdate(norm))
      continue;
    for (unsigned request = 0; request < normsOf.size(); ++request)
      if (edit.flow.gradientsInto(norm.getNorm()).test(request) && edit.flow.precedesUpdatesOf(norm, request))
        normsOf[request].push_back(norm);
  }
}

Value CheckedNorms::isFinite(GlobalNormOp norm) {
  Value &flag = flags[norm];
  if (flag)
    return flag;
  OpBuilder &builder = edit.builder;
  builder.setInsertionPointAfter(norm);
  RankedTensorType type = scalarType(builder.getF32Type());
  auto number = DenseElementsAttr::get(type, builder.getF32FloatAttr(1));
  Value one = ConstantOp::create(builder, edit.loc, type, number);
  flag = CheckFiniteOp::create(builder, edit.loc, scalarType(builder.getI1Type()), norm.getNorm(), one);
  return flag;
}

void CheckedNorms::addTo(const FiniteChecks &checks) {
  for (auto [check, norms] : llvm::zip(checks.getChecks(), normsOf))
    addTo(check, norms);
}

void CheckedNorms::addTo(AllFiniteOp check, ArrayRef<GlobalNormOp> norms) {
  Operation *last = check;
  for (GlobalNormOp norm : norms) {
    Value flag = isFinite(norm);
    check.getGradientsMutable().append(flag);
    last = later(last, flag.getDefiningOp());
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
