// Makes gelu or relu a part of the product that it is applied to, where nothing else reads the product.
//
//   %z = mpc.matmul %x, %w, %b : ...
//   %y = mpc.gelu %z {approximate = tanh} : tensor<32x336xbf16>
// becomes
//   %y = mpc.matmul %x, %w, %b {activation = gelu_tanh} : ...
//
// and
//
//   %c = mpc.conv2d %x, %w : ...
//   %p, %i = mpc.max_pool2d %c {kernel_size = [2, 2], strides = [2, 2]} : ...
//   %y = mpc.relu %p : tensor<32x14x14x6xf16>
// becomes
//   %c = mpc.conv2d %x, %w {activation = relu} : ...
//   %y, %i = mpc.max_pool2d %c {kernel_size = [2, 2], strides = [2, 2]} : ...
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/target_model.h"
#include "compiler/dialect/tensor_values.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_FOLDACTIVATIONPASS
#include "passes/passes.h.inc"

namespace {

// Whether only one operation reads the value, which has the element type of the activation's result.
static bool isSole(Value v, Type element) { return v.hasOneUse() && getElementTypeOrSelf(v) == element; }

// What x is in front of reshapes, each of which is the only reader of what it reshapes.
static Value behindSoleReshapes(Value x, Type element) {
  while (isSole(x, element) && x.getDefiningOp<ReshapeOp>())
    x = x.getDefiningOp<ReshapeOp>().getX();
  return x;
}

// The product or convolution that can take the activation of its result x, which only that activation reads. Both must
// belong to the same recompute call. Otherwise the backward pass would compute only one of them again. Null: there is
// none.
static ActivationOpInterface productOf(Value x, Type element, Operation *activation) {
  auto product = isSole(x, element) ? x.getDefiningOp<ActivationOpInterface>() : nullptr;
  if (!product || product.getActivation() != Activation::kNone)
    return nullptr;
  return recomputeCallOf(product) == recomputeCallOf(activation) ? product : nullptr;
}

static void giveActivation(PatternRewriter &rewriter, ActivationOpInterface product, Activation activation,
                           Operation *folded) {
  rewriter.modifyOpInPlace(product, [&] {
    product.setActivation(activation);
    product->setLoc(FusedLoc::get(product->getContext(), {product->getLoc(), folded->getLoc()}));
  });
  rewriter.replaceOp(folded, folded->getOperand(0));
}

class FoldGelu : public OpRewritePattern<GeluOp> {
public:
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GeluOp gelu, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(gelu.getY());
    ActivationOpInterface product = productOf(behindSoleReshapes(gelu.getX(), element), element, gelu);
    // oneDNN's convolutions in bf16 take longer with gelu than without it and a region (docs/fusion.md).
    if (!product || (isa<Conv2dOp>(product.getOperation()) && element.isBF16()))
      return failure();
    bool isTanhForm = gelu.getApproximate() == Approximation::kTanh;
    giveActivation(rewriter, product, isTanhForm ? Activation::kGeluTanh : Activation::kGelu, gelu);
    return success();
  }
};

// Relu commutes with rounding and with max pooling. Where a window has no positive element, the pooling remembers
// another one, but relu's derivative passes nothing to it.
class FoldRelu : public OpRewritePattern<ReluOp> {
public:
  FoldRelu(MLIRContext *context, int64_t mostBytes) : OpRewritePattern(context), mostBytes(mostBytes) {}

  LogicalResult matchAndRewrite(ReluOp relu, PatternRewriter &rewriter) const override {
    Type element = getElementTypeOrSelf(relu.getY());
    Value x = behindSoleReshapes(relu.getX(), element);
    if (auto pool = x.getDefiningOp<MaxPool2dOp>(); pool && x == pool.getY() && isSole(x, element))
      x = pool.getX();
    ActivationOpInterface product = productOf(x, element, relu);
    if (!product || bytesOf(x) > mostBytes)
      return failure();
    giveActivation(rewriter, product, Activation::kRelu, relu);
    return success();
  }

private:
  int64_t mostBytes;
};

class FoldActivationPass : public impl::FoldActivationPassBase<FoldActivationPass> {
public:
  using FoldActivationPassBase::FoldActivationPassBase;

  void runOnOperation() override {
    FailureOr<std::unique_ptr<TargetModel>> target = targetModelOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    if ((*target)->foldsGelu())
      patterns.add<FoldGelu>(&getContext());
    if ((*target)->foldsRelu())
      patterns.add<FoldRelu>(&getContext(), (*target)->bytesPerLaunch());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

} // namespace mpc
