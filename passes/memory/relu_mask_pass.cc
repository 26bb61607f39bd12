// Keeps a byte an element for relu's derivative where nothing else in the backward pass reads what relu has computed.
//
//   %y = mpc.relu %x : tensor<2x4x4x3xf16>
//   %m = mpc.reduce_mean %y {axes = [1, 2]} : ...
//   %dx = mpc.relu_grad %dy, %y backward : ...
// becomes
//   %y = mpc.relu %x : tensor<2x4x4x3xf16>
//   %k = mpc.greater %y, %zero : (...) -> tensor<2x4x4x3xi1>
//   %m = mpc.reduce_mean %y {axes = [1, 2]} : ...
//   %dx = mpc.where %k, %dy, %zero backward : ...
//
// A sweep, because all derivatives that read one value change together.
#include "compiler/analysis/phases.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/target_model.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/function_body.h"
#include "passes/passes.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_RELUMASKPASS
#include "passes/passes.h.inc"

namespace {

/// Derivatives that read one value, by that value behind reshapes.
using Readers = llvm::MapVector<Value, SmallVector<ReluGradOp>>;

class ReluMaskPass : public impl::ReluMaskPassBase<ReluMaskPass> {
public:
  using ReluMaskPassBase::ReluMaskPassBase;

  void runOnOperation() override {
    Block *body = onlyBlock(getOperation());
    if (!body)
      return;
    auto first = llvm::find_if(*body, [](Operation &op) { return isBackwardOp(&op); });
    if (first == body->end())
      return;
    FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    firstBackward = &*first;
    zeroConstant = nullptr;
    Readers derivatives;
    for (auto grad : body->getOps<ReluGradOp>())
      derivatives[behindViews(grad.getY())].push_back(grad);
    for (auto &[result, grads] : derivatives) {
      if (!isMadeForward(result) || !onlyDerivativesRead(result) || isFoldedRelu(result, **target))
        continue;
      if (Value operand = keptOperand(result)) {
        for (ReluGradOp grad : grads)
          grad.getYMutable().assign(inShapeOf(grad, operand));
        continue;
      }
      Value mask = makeMask(result);
      for (ReluGradOp grad : grads)
        select(grad, inShapeOf(grad, mask));
    }
  }

private:
  bool isMadeForward(Value result) const {
    Operation *op = result.getDefiningOp();
    return op && !isa<ConstantOp>(op) && op->isBeforeInBlock(firstBackward);
  }

  // Whether the value and its views are kept for derivatives of relu alone: everything else has read them before.
  bool onlyDerivativesRead(Value v) const {
    return llvm::all_of(v.getUses(), [&](OpOperand &use) {
      Operation *user = use.getOwner();
      if (auto view = dyn_cast<ViewLikeOpInterface>(user))
        return onlyDerivativesRead(view.getViewDest());
      if (auto grad = dyn_cast<ReluGradOp>(user))
        return &grad.getYMutable() == &use;
      return user->isBeforeInBlock(firstBackward);
    });
  }

  // Whether a product has taken in the relu: no region is left for the comparison, whose launch costs more than the
  // bytes.
  static bool isFoldedRelu(Value result, const TargetModel &target) {
    return target.foldsRelu() && !result.getDefiningOp<ReluOp>() && bytesOf(result) <= target.bytesPerLaunch();
  }

  // The operand of relu, where it is kept anyway. It is above zero where the result is.
  Value keptOperand(Value result) const {
    auto relu = result.getDefiningOp<ReluOp>();
    if (!relu || relu.getX().getType() != result.getType())
      return {};
    Value operand = behindViews(relu.getX());
    return isMadeForward(operand) && !onlyDerivativesRead(operand) ? relu.getX() : Value();
  }

  Value zero() {
    if (!zeroConstant) {
      OpBuilder builder = OpBuilder::atBlockBegin(firstBackward->getBlock());
      auto type = RankedTensorType::get({}, builder.getF32Type());
      zeroConstant = ConstantOp::create(builder, firstBackward->getLoc(), type,
                                        DenseElementsAttr::get(type, builder.getF32FloatAttr(0)));
    }
    return zeroConstant;
  }

  Value makeMask(Value result) {
    Operation *op = result.getDefiningOp();
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    auto type = cast<RankedTensorType>(result.getType()).clone(builder.getI1Type());
    auto mask = GreaterOp::create(builder, op->getLoc(), type, result, zero());
    // The mask belongs to the same Cell and the same recompute call as the result.
    if (ScopeAttr scope = scopeOf(op))
      setScope(mask, scope);
    setRecomputeCall(mask, recomputeCallOf(op));
    return mask;
  }

  static Value inShapeOf(ReluGradOp grad, Value v) {
    ArrayRef<int64_t> shape = cast<RankedTensorType>(grad.getY().getType()).getShape();
    auto type = cast<RankedTensorType>(v.getType());
    if (type.getShape() == shape)
      return v;
    OpBuilder builder(grad);
    return ReshapeOp::create(builder, grad.getLoc(), type.clone(shape), v, shape);
  }

  void select(ReluGradOp grad, Value mask) {
    OpBuilder builder(grad);
    auto chosen = WhereOp::create(builder, grad.getLoc(), grad.getDx().getType(), mask, grad.getDy(), zero());
    chosen->setDiscardableAttrs(grad->getDiscardableAttrDictionary());
    grad.getDx().replaceAllUsesWith(chosen.getY());
    grad.erase();
  }

  Operation *firstBackward = nullptr;
  Value zeroConstant;
};

} // namespace

} // namespace mpc
