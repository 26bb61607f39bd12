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
    Block *Body = firstBlock(getOperation());
    if (!Body)
      return;
    bool Changed = true;
    while (Changed) {
      Changed = rewriteCasts(*Body);
      Changed |= mergeEqualComputations(*Body);
      Changed |= eraseDeadOperations(*Body);
    }
  }

private:
  static bool rewriteCasts(Block &Block) {
    bool Changed = false;
    for (auto Cast : llvm::make_early_inc_range(Block.getOps<CastOp>())) {
      if (replaceByFold(Cast) || foldConstant(Cast) || sinkWidening(Cast) || hoistNarrowing(Cast) ||
          foldNarrowing(Cast)) {
        Changed = true;
        continue;
      }
      Changed |= bypassWidening(Cast);
    }
    return Changed;
  }

  // The rounding happens here, once, instead of in every step.
  static bool foldConstant(CastOp Cast) {
    auto Constant = Cast.getX().getDefiningOp<ConstantOp>();
    auto Elements = Constant ? dyn_cast<DenseFPElementsAttr>(Constant.getValue()) : DenseFPElementsAttr();
    if (!Elements || !isFloating(Cast.getY()))
      return false;
    auto Element = cast<FloatType>(elementOf(Cast.getY()));
    DenseElementsAttr Rounded = Elements.mapValues(Element, [&](const APFloat &Given) {
      APFloat Number = Given;
      bool LosesInfo = false;
      Number.convert(Element.getFloatSemantics(), APFloat::rmNearestTiesToEven, &LosesInfo);
      return Number.bitcastToAPInt();
    });
    OpBuilder Builder(Cast);
    auto Folded = ConstantOp::create(Builder, Cast.getLoc(), Cast.getY().getType(), Rounded);
    Folded->setDiscardableAttrs(Cast->getDiscardableAttrDictionary());
    Cast.getY().replaceAllUsesWith(Folded.getOutput());
    Cast.erase();
    return true;
  }

  static bool bypassWidening(CastOp Cast) {
    if (!isWidening(Cast))
      return false;
    bool Changed = false;
    for (OpOperand &Use : llvm::make_early_inc_range(Cast.getY().getUses()))
      if (readsAnyFloat(Use)) {
        markFolded(Use.getOwner());
        Use.set(Cast.getX());
        Changed = true;
      }
    return Changed;
  }
};

} // namespace

} // namespace mpc
