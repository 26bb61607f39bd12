// Keeps a byte an element for relu's derivative where nothing else in the backward pass reads what relu has computed.
//
//   %y = mpc.relu %x : tensor<2x4x4x3xf16>
//   %m = mpc.reduce_mean %y {axes = [1, 2]} : ...
//   %dx = mpc.relu_grad %dy, %y {mpc.backward} : ...
// becomes
//   %y = mpc.relu %x : tensor<2x4x4x3xf16>
//   %k = mpc.greater %y, %zero : (...) -> tensor<2x4x4x3xi1>
//   %m = mpc.reduce_mean %y {axes = [1, 2]} : ...
//   %dx = mpc.where %k, %dy, %zero {mpc.backward} : ...
#include "compiler/analysis/phases.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
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
    Block *Body = onlyBlock(getOperation());
    if (!Body)
      return;
    auto First = llvm::find_if(*Body, [](Operation &Op) { return isBackwardOp(&Op); });
    if (First == Body->end())
      return;
    FirstBackward = &*First;
    Zero = nullptr;
    Readers Derivatives;
    for (auto Grad : Body->getOps<ReluGradOp>())
      Derivatives[behindViews(Grad.getY())].push_back(Grad);
    for (auto &[Result, Grads] : Derivatives) {
      if (!isMadeForward(Result) || !onlyDerivativesRead(Result))
        continue;
      if (Value Operand = keptOperand(Result)) {
        for (ReluGradOp Grad : Grads)
          Grad.getYMutable().assign(inShapeOf(Grad, Operand));
        continue;
      }
      Value Mask = makeMask(Result);
      for (ReluGradOp Grad : Grads)
        select(Grad, inShapeOf(Grad, Mask));
    }
  }

private:
  bool isMadeForward(Value Result) const {
    Operation *Op = Result.getDefiningOp();
    return Op && !isa<ConstantOp>(Op) && Op->isBeforeInBlock(FirstBackward);
  }

  // Whether the value and its views are kept for derivatives of relu alone: everything else has read them before.
  bool onlyDerivativesRead(Value V) const {
    return llvm::all_of(V.getUses(), [&](OpOperand &Use) {
      Operation *User = Use.getOwner();
      if (auto View = dyn_cast<ViewLikeOpInterface>(User))
        return onlyDerivativesRead(View.getViewDest());
      if (auto Grad = dyn_cast<ReluGradOp>(User))
        return &Grad.getYMutable() == &Use;
      return User->isBeforeInBlock(FirstBackward);
    });
  }

  // The operand of relu, where it is kept anyway. It is above zero where the result is.
  Value keptOperand(Value Result) const {
    auto Relu = Result.getDefiningOp<ReluOp>();
    if (!Relu || Relu.getX().getType() != Result.getType())
      return {};
    Value Operand = behindViews(Relu.getX());
    return isMadeForward(Operand) && !onlyDerivativesRead(Operand) ? Relu.getX() : Value();
  }

  Value zero() {
    if (!Zero) {
      OpBuilder Builder = OpBuilder::atBlockBegin(FirstBackward->getBlock());
      auto Type = RankedTensorType::get({}, Builder.getF32Type());
      Zero = ConstantOp::create(Builder, FirstBackward->getLoc(), Type,
                                DenseElementsAttr::get(Type, Builder.getF32FloatAttr(0)));
    }
    return Zero;
  }

  Value makeMask(Value Result) {
    Operation *Op = Result.getDefiningOp();
    OpBuilder Builder(Op->getContext());
    Builder.setInsertionPointAfter(Op);
    auto Type = cast<RankedTensorType>(Result.getType()).clone(Builder.getI1Type());
    auto Mask = GreaterOp::create(Builder, Op->getLoc(), Type, Result, zero());
    // The mask belongs to the same Cell and the same recompute call as the result.
    if (ScopeAttr Scope = scopeOf(Op))
      setScope(Mask, Scope);
    setRecomputeCall(Mask, recomputeCallOf(Op));
    return Mask;
  }

  static Value inShapeOf(ReluGradOp Grad, Value V) {
    ArrayRef<int64_t> Shape = cast<RankedTensorType>(Grad.getY().getType()).getShape();
    auto Type = cast<RankedTensorType>(V.getType());
    if (Type.getShape() == Shape)
      return V;
    OpBuilder Builder(Grad);
    return ReshapeOp::create(Builder, Grad.getLoc(), Type.clone(Shape), V, Shape);
  }

  void select(ReluGradOp Grad, Value Mask) {
    OpBuilder Builder(Grad);
    auto Chosen = WhereOp::create(Builder, Grad.getLoc(), Grad.getDx().getType(), Mask, Grad.getDy(), zero());
    Chosen->setDiscardableAttrs(Grad->getDiscardableAttrDictionary());
    Grad.getDx().replaceAllUsesWith(Chosen.getY());
    Grad.erase();
  }

  Operation *FirstBackward = nullptr;
  Value Zero;
};

} // namespace

} // namespace mpc
