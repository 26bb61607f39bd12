// Lets attention read its heads where one product has left them, and write its gradient where the next product reads
// it.
//
//   %h = mpc.transpose %p {permutation = [2, 0, 3, 1, 4]} : (tensor<2x4x3x2x8xf16>) -> tensor<3x2x2x4x8xf16>
//   %s:3 = mpc.split %h {sizes = [1, 1, 1]} : ...
//   %q = mpc.reshape %s#0 ...   // and %k, %v of the others
//   %y, %l = mpc.attention %q, %k, %v {scale = 0.125} : ...
//   %t = mpc.transpose %y {permutation = [0, 2, 1, 3]} : ...
// becomes
//   %qkv = mpc.reshape %p {shape = [2, 4, 48]} : ...
//   %y, %l = mpc.packed_attention %qkv {heads = 2, scale = 0.125} : ...
//   %t = mpc.reshape %y {shape = [2, 4, 2, 8]} : ...
//
// A sweep, because the operation and its gradients are replaced together or not at all.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/target_model.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/computations.h"
#include "passes/function_body.h"
#include "passes/layout/head_views.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_PACKATTENTIONPASS
#include "passes/passes.h.inc"

namespace {

/// An attention whose heads one tensor holds, with all its gradients, which one tensor takes.
struct PackedPlan {
  AttentionOp attention;
  Value qkv;
  SmallVector<std::pair<AttentionGradOp, Value>> gradients; ///< each with the value that holds dquery, dkey and dvalue
};

Value behindReshapes(Value v) {
  while (auto reshape = v.getDefiningOp<ReshapeOp>())
    v = reshape.getX();
  return v;
}

/// The tensor that holds query, key and value, behind reshapes. Null: there is none.
Value packedOperand(AttentionOp attention) {
  if (attention.getQuery().getType() != attention.getKey().getType() ||
      attention.getQuery().getType() != attention.getValue().getType() ||
      attention.getQuery().getType() != attention.getY().getType())
    return Value();
  Value found;
  for (auto [index, operand] : llvm::enumerate(attention->getOperands().take_front(3))) {
    Value holder = packedSourceOf(operand, {int64_t(index), 3});
    if (!holder || (found && behindReshapes(holder) != found))
      return Value();
    found = behindReshapes(holder);
  }
  return found;
}

/// The value that holds the three results. Null: there is none.
Value packedResult(AttentionGradOp gradient) {
  Value found;
  for (auto [index, result] : llvm::enumerate(gradient->getResults())) {
    Value holder = packedCopyOf(result, {int64_t(index), 3});
    if (!holder || (found && holder != found))
      return Value();
    found = holder;
  }
  return elementOf(found) == elementOf(gradient.getDy()) ? found : Value();
}

/// Whether \p gradient is that of \p attention, and not of another one with the same norms.
bool isGradientOf(AttentionGradOp gradient, AttentionOp attention) {
  return gradient.getQuery() == attention.getQuery() && gradient.getKey() == attention.getKey() &&
         gradient.getValue() == attention.getValue() && gradient.getMask() == attention.getMask() &&
         gradient.getLogSumExp() == attention.getLogSumExp() && gradient.getScaleAttr() == attention.getScaleAttr() &&
         gradient.getCausal() == attention.getCausal();
}

std::optional<PackedPlan> planOf(AttentionOp attention) {
  PackedPlan plan{attention, packedOperand(attention), {}};
  if (!plan.qkv)
    return std::nullopt;
  for (Operation *user : attention.getLogSumExp().getUsers()) {
    auto gradient = dyn_cast<AttentionGradOp>(user);
    if (!gradient)
      continue;
    Value holder = isGradientOf(gradient, attention) ? packedResult(gradient) : Value();
    if (!holder)
      return std::nullopt;
    plan.gradients.push_back({gradient, holder});
  }
  return plan;
}

/// Makes operations with the scope, the precision and the marks of one that they replace.
class Replacement {
public:
  explicit Replacement(Operation *op) : builder(op), replaced(op) {}

  template <typename Op, typename... Args> Op create(Args &&...args) {
    Op made = Op::create(builder, replaced->getLoc(), std::forward<Args>(args)...);
    made->setDiscardableAttrs(replaced->getDiscardableAttrDictionary());
    return made;
  }
  Value reshaped(Value v, ArrayRef<int64_t> shape) {
    auto type = cast<RankedTensorType>(v.getType());
    return type.getShape() == shape ? v : create<ReshapeOp>(type.clone(shape), v, shape).getY();
  }
  /// Exchanges the axes of heads and of rows.
  Value exchanged(Value v) {
    constexpr int64_t permutation[] = {0, 2, 1, 3};
    return create<TransposeOp>(permuted(v.getType(), permutation), v, permutation).getY();
  }

private:
  OpBuilder builder;
  Operation *replaced;
};

void pack(const PackedPlan &plan) {
  AttentionOp attention = plan.attention;
  ArrayRef<int64_t> heads = cast<RankedTensorType>(attention.getQuery().getType()).getShape();
  int64_t samples = heads[0], count = heads[1], rows = heads[2], width = heads[3];
  IntegerAttr countAttr = Builder(attention.getContext()).getI64IntegerAttr(count);
  Replacement forward(attention);
  Value qkv = forward.reshaped(plan.qkv, {samples, rows, 3 * count * width});
  auto joined = cast<RankedTensorType>(qkv.getType()).clone({samples, rows, count * width});
  auto packed = forward.create<PackedAttentionOp>(joined, attention.getLogSumExp().getType(), qkv, attention.getMask(),
                                                  countAttr, attention.getScaleAttr(), attention.getCausalAttr());
  for (auto [gradient, holder] : plan.gradients) {
    Replacement backward(gradient);
    Value dy = backward.reshaped(backward.exchanged(gradient.getDy()), joined.getShape());
    auto dqkv = backward.create<PackedAttentionGradOp>(qkv.getType(), dy, qkv, packed.getY(), packed.getLogSumExp(),
                                                       attention.getMask(), countAttr, attention.getScaleAttr(),
                                                       attention.getCausalAttr());
    holder.replaceAllUsesWith(backward.reshaped(dqkv.getDqkv(), cast<RankedTensorType>(holder.getType()).getShape()));
  }
  Value y = forward.exchanged(forward.reshaped(packed.getY(), {samples, rows, count, width}));
  attention.replaceAllUsesWith(ValueRange{y, packed.getLogSumExp()});
}

class PackAttentionPass : public impl::PackAttentionPassBase<PackAttentionPass> {
public:
  using PackAttentionPassBase::PackAttentionPassBase;

  void runOnOperation() override {
    Block *body = firstBlock(getOperation());
    if (!body)
      return;
    FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    if (!(*target)->packsAttention())
      return;
    SmallVector<AttentionOp> all(body->getOps<AttentionOp>());
    bool changed = false;
    for (AttentionOp attention : all)
      if (std::optional<PackedPlan> plan = planOf(attention)) {
        pack(*plan);
        changed = true;
      }
    if (!changed)
      return;
    for (Operation &op : llvm::make_early_inc_range(*body))
      if (isa<TransposeOp, ReshapeOp>(op))
        replaceByFold(&op);
    eraseDeadOperations(*body);
  }
};

} // namespace

} // namespace mpc
