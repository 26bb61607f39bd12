// Makes gelu a part of the product that it is applied to, where nothing else reads the product.
//
//   %z = mpc.matmul %x, %w, %b : ...
//   %y = mpc.gelu %z {approximate = tanh} : tensor<32x336xbf16>
// becomes
//   %y = mpc.matmul %x, %w, %b {activation = gelu_tanh} : ...
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/target_model.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_FOLDACTIVATIONPASS
#include "passes/passes.h.inc"

namespace {

class FoldGelu : public OpRewritePattern<GeluOp> {
public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GeluOp gelu, PatternRewriter &rewriter) const override {
    Operation *product = productOf(gelu);
    if (!product)
      return failure();
    bool isTanhForm = gelu.getApproximate() == Approximation::kTanh;
    Activation activation = isTanhForm ? Activation::kGeluTanh : Activation::kGelu;
    rewriter.modifyOpInPlace(product, [&] {
      product->setAttr("activation", ActivationAttr::get(product->getContext(), activation));
      product->setLoc(FusedLoc::get(product->getContext(), {product->getLoc(), gelu.getLoc()}));
    });
    rewriter.replaceOp(gelu, gelu.getX());
    return success();
  }

private:
  // The product or convolution whose result only gelu reads, maybe behind reshapes. Nothing but its own rounding lies
  // in between. Null: there is none.
  static Operation *productOf(GeluOp gelu) {
    Type element = getElementTypeOrSelf(gelu.getY());
    auto isSole = [&](Value v) { return v.hasOneUse() && getElementTypeOrSelf(v) == element; };
    Value x = gelu.getX();
    while (isSole(x) && x.getDefiningOp<ReshapeOp>())
      x = x.getDefiningOp<ReshapeOp>().getX();
    Operation *product = isSole(x) ? x.getDefiningOp() : nullptr;
    if (!product || !has<Property::TakesActivation>(product) || activationOf(product) != Activation::kNone)
      return nullptr;
    // oneDNN's convolutions in bf16 take longer with gelu than without it and a region (docs/fusion.md).
    if (isa<Conv2dOp>(product) && element.isBF16())
      return nullptr;
    // Both must belong to the same recompute call. Otherwise the backward pass would compute only one of them again.
    return recomputeCallOf(product) == recomputeCallOf(gelu) ? product : nullptr;
  }

  static Activation activationOf(Operation *product) {
    if (auto matmul = dyn_cast<MatmulOp>(product))
      return matmul.getActivation();
    return cast<Conv2dOp>(product).getActivation();
  }
};

class FoldActivationPass : public impl::FoldActivationPassBase<FoldActivationPass> {
public:
  using FoldActivationPassBase::FoldActivationPassBase;

  void runOnOperation() override {
    FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    if (!(*target)->foldsGelu())
      return;
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldGelu>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

} // namespace mpc
