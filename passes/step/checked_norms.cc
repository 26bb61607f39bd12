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

// Whether \p v is finite where a finite check passes: then its squares are, in f64. A check looks at what is unscaled.
static bool isCheckedGradient(Value v, ArrayRef<GradientRequest> requests) {
  if (auto clamp = v.getDefiningOp<ClampOp>())
    v = clamp.getX();
  if (auto unscale = v.getDefiningOp<UnscaleOp>())
    v = unscale.getGradient();
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

// What is computed from \p from, and itself, up to \p last, which comes later in the block.
static llvm::SetVector<Operation *> followers(Operation *from, Operation *last) {
  llvm::SetVector<Operation *> follow;
  follow.insert(from);
  for (Operation &op : llvm::make_range(std::next(from->getIterator()), std::next(last->getIterator())))
    if (llvm::any_of(op.getOperands(), [&](Value v) { return follow.contains(v.getDefiningOp()); }))
      follow.insert(&op);
  return follow;
}

CheckedNorms::CheckedNorms(StepEdit &edit, bool takesMeans) : edit(edit) {
  normsOf.resize(edit.getRequests().size());
  for (auto norm : edit.getBody().getOps<GlobalNormOp>()) {
    bool isChecked = !takesMeans && llvm::all_of(norm.getGradients(), [&](Value gradient) {
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
  // An earlier run may have made it.
  for (Operation *user : norm.getNorm().getUsers())
    if (auto made = dyn_cast<CheckFiniteOp>(user); made && !flag)
      flag = made.getFinite();
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
  for (auto [request, check] : llvm::enumerate(checks.getChecks()))
    addTo(check, request);
}

void CheckedNorms::addTo(AllFiniteOp check, unsigned request) {
  Operation *last = check;
  for (GlobalNormOp norm : normsOf[request]) {
    if (check->isBeforeInBlock(norm) && followers(check, norm).contains(norm))
      continue;
    Value flag = isFinite(norm);
    if (llvm::is_contained(check.getGradients(), flag))
      continue;
    check.getGradientsMutable().append(flag);
    last = later(last, flag.getDefiningOp());
  }
  if (last == check)
    return;
  // No update reads the check of a wrap yet.
  llvm::SetVector<Operation *> follow = followers(check, last);
  for (Operation *op : follow) {
    op->moveAfter(last);
    last = op;
  }
}

} // namespace mpc
