// Folds, merges and bypasses casts where no value changes, and moves them towards fewer bytes.
//
//   %e = mpc.cast %x : (tensor<4xf16>) -> tensor<4xf32>
//   %l = mpc.cast %e : (tensor<4xf32>) -> tensor<4xf16>
//   %m = mpc.neg %l : tensor<4xf16>
//   %t = mpc.transpose %y {permutation = [1, 0]} : ...
//   %low = mpc.cast %t : (tensor<3x2xf32>) -> tensor<3x2xf16>
// becomes
//   %m = mpc.neg %x : tensor<4xf16>
//   %0 = mpc.cast %y : (tensor<2x3xf32>) -> tensor<2x3xf16>
//   %low = mpc.transpose %0 {permutation = [1, 0]} : (tensor<2x3xf16>) -> tensor<3x2xf16>
//
// A sweep, because the moves of casts are priced in bytes, and equal computations merge between two rounds.
#include "compiler/dialect/tensor_values.h"
#include "passes/computations.h"
#include "passes/function_body.h"
#include "passes/passes.h"
#include "passes/precision/cast_motion.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_CASTCLEANUPPASS
#include "passes/passes.h.inc"

namespace {

class CastCleanupPass : public impl::CastCleanupPassBase<CastCleanupPass> {
public:
  using CastCleanupPassBase::CastCleanupPassBase;

  void runOnOperation() override {
    Block *body = firstBlock(getOperation());
    if (!body)
      return;
    bool changed = true;
    while (changed) {
      changed = rewriteCasts(*body);
      changed |= mergeEqualComputations(*body);
      changed |= eraseDeadOperations(*body);
    }
  }

private:
  static bool rewriteCasts(Block &block) {
    bool changed = false;
    for (auto cast : llvm::make_early_inc_range(block.getOps<CastOp>())) {
      if (replaceByFold(cast) || foldConstant(cast) || sinkWidening(cast) || hoistNarrowing(cast) ||
          foldNarrowing(cast)) {
        changed = true;
        continue;
      }
      changed |= bypassWidening(cast);
    }
    return changed;
  }

  // The rounding happens here, once, instead of in every step.
  static bool foldConstant(CastOp narrowing) {
    auto constant = narrowing.getX().getDefiningOp<ConstantOp>();
    auto elements = constant ? dyn_cast<DenseFPElementsAttr>(constant.getValue()) : DenseFPElementsAttr();
    if (!elements || !isFloating(narrowing.getY()))
      return false;
    auto element = cast<FloatType>(elementOf(narrowing.getY()));
    DenseElementsAttr rounded = elements.mapValues(element, [&](const APFloat &given) {
      APFloat number = given;
      bool losesInfo = false;
      number.convert(element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &losesInfo);
      return number.bitcastToAPInt();
    });
    OpBuilder builder(narrowing);
    auto folded = ConstantOp::create(builder, narrowing.getLoc(), narrowing.getY().getType(), rounded);
    folded->setDiscardableAttrs(narrowing->getDiscardableAttrDictionary());
    narrowing.getY().replaceAllUsesWith(folded.getOutput());
    narrowing.erase();
    return true;
  }

  static bool bypassWidening(CastOp cast) {
    if (!isWidening(cast))
      return false;
    bool changed = false;
    for (OpOperand &use : llvm::make_early_inc_range(cast.getY().getUses()))
      if (readsAnyFloat(use)) {
        markFolded(use.getOwner());
        use.set(cast.getX());
        changed = true;
      }
    return changed;
  }
};

} // namespace

} // namespace mpc
