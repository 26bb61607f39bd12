// Lets updates unscale and clip the gradients that they read: the backward pass leaves no f32 copy for them.
//
//   %u = mpc.unscale %g, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
//   %n = mpc.global_norm %u : ...
//   %c = mpc.clip_by_norm %u, %n {max_norm = 1.000000e+00} : ...
//   %p2, %v2 = mpc.momentum %p, %v, %c, %rate, %finite : ...
// becomes
//   %n = mpc.global_norm %scale, %g {unscale = true} : (tensor<f32>, tensor<4xf16>) -> tensor<f32>
//   %p2, %v2 = mpc.momentum %p, %v, %g, %rate, %scale, %n, %finite {max_norm = 1.000000e+00, unscale = true} : ...
//
// A sweep, because order matters: clips go before norms, and what folds is settled for all gradients at once.
#include "compiler/dialect/dialect.h"
#include "passes/function_body.h"
#include "passes/passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_FOLDGRADIENTSCALINGPASS
#include "passes/passes.h.inc"

namespace {

/// The unscale operations of a block that every reader can do itself.
using Unscales = llvm::SmallSetVector<Operation *, 16>;

class FoldGradientScalingPass : public impl::FoldGradientScalingPassBase<FoldGradientScalingPass> {
public:
  using FoldGradientScalingPassBase::FoldGradientScalingPassBase;

  void runOnOperation() override {
    Block *body = firstBlock(getOperation());
    if (!body)
      return;
    // An update unscales before it clips: what is clipped goes first.
    for (auto clip : llvm::make_early_inc_range(body->getOps<ClipByNormOp>()))
      foldClip(clip);
    Unscales folded = findUnscales(*body);
    for (GlobalNormOp norm : llvm::to_vector(body->getOps<GlobalNormOp>()))
      foldIntoNorm(norm, folded);
    for (Operation *unscale : folded)
      foldIntoUpdates(cast<UnscaleOp>(unscale));
  }

private:
  // The update that reads its gradient here, or null.
  static OptimizerOpInterface updateBy(OpOperand &use) {
    auto update = dyn_cast<OptimizerOpInterface>(use.getOwner());
    return update && &update.getGradientMutable() == &use ? update : OptimizerOpInterface();
  }

  static void readInstead(OptimizerOpInterface update, Value gradient, Value scalar) {
    update.getGradientMutable().set(gradient);
    SmallVector<Value, 3> scalars = {scalar};
    llvm::append_range(scalars, update.getScalars());
    update.getScalarsMutable().assign(scalars);
  }

  static void foldClip(ClipByNormOp clip) {
    SmallVector<OptimizerOpInterface> updates;
    for (OpOperand &use : clip.getOutput().getUses()) {
      OptimizerOpInterface update = updateBy(use);
      if (!update || update.getUnscale() || !update.getMaxNorm().isZero())
        return;
      updates.push_back(update);
    }
    for (OptimizerOpInterface update : updates) {
      readInstead(update, clip.getGradient(), clip.getNorm());
      update.setMaxNorm(clip.getMaxNorm());
    }
    if (!updates.empty())
      clip.erase();
  }

  static bool unscalesAll(GlobalNormOp norm, Value scale, const Unscales &folded) {
    return !norm.getUnscale() && llvm::all_of(norm.getGradients(), [&](Value gradient) {
      auto unscale = gradient.getDefiningOp<UnscaleOp>();
      return unscale && unscale.getScale() == scale && folded.contains(unscale);
    });
  }

  static bool canUnscale(OpOperand &use, Value scale, const Unscales &folded) {
    if (OptimizerOpInterface update = updateBy(use))
      return !update.getUnscale();
    auto norm = dyn_cast<GlobalNormOp>(use.getOwner());
    return norm && unscalesAll(norm, scale, folded);
  }

  // A norm unscales all of its gradients or none, so that one that stays keeps others.
  static Unscales findUnscales(Block &body) {
    Unscales folded;
    for (auto unscale : body.getOps<UnscaleOp>())
      if (!unscale.getOutput().use_empty())
        folded.insert(unscale);
    auto stays = [&](Operation *op) {
      auto unscale = cast<UnscaleOp>(op);
      return llvm::any_of(unscale.getOutput().getUses(),
                          [&](OpOperand &use) { return !canUnscale(use, unscale.getScale(), folded); });
    };
    bool changed = true;
    while (changed) {
      changed = false;
      for (Operation *op : llvm::to_vector(folded))
        changed |= stays(op) && folded.remove(op);
    }
    return folded;
  }

  static void foldIntoNorm(GlobalNormOp norm, const Unscales &folded) {
    auto first = norm.getInputs().front().getDefiningOp<UnscaleOp>();
    if (!first || !unscalesAll(norm, first.getScale(), folded))
      return;
    SmallVector<Value> inputs = {first.getScale()};
    for (Value gradient : norm.getGradients())
      inputs.push_back(gradient.getDefiningOp<UnscaleOp>().getGradient());
    norm.getInputsMutable().assign(inputs);
    norm.setUnscale(true);
  }

  static void foldIntoUpdates(UnscaleOp unscale) {
    for (OpOperand &use : llvm::make_early_inc_range(unscale.getOutput().getUses())) {
      OptimizerOpInterface update = updateBy(use);
      readInstead(update, unscale.getGradient(), unscale.getScale());
      update.setUnscale(true);
    }
    unscale.erase();
  }
};

} // namespace

} // namespace mpc
