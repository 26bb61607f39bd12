// Lets updates unscale and clip the gradients that they read: the backward pass leaves no f32 copy for them.
//
//   %u = mpc.unscale %g, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
//   %n = mpc.global_norm %u : ...
//   %c = mpc.clip_by_norm %u, %n {max_norm = 1.000000e+00} : ...
//   %p2, %v2 = mpc.momentum %p, %v, %c, %rate, %finite : ...
// becomes
//   %n = mpc.global_norm %scale, %g {unscale = true} : (tensor<f32>, tensor<4xf16>) -> tensor<f32>
//   %p2, %v2 = mpc.momentum %p, %v, %g, %rate, %scale, %n, %finite {max_norm = 1.000000e+00, unscale = true} : ...
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
    Block *Body = firstBlock(getOperation());
    if (!Body)
      return;
    // An update unscales before it clips: what is clipped goes first.
    for (auto Clip : llvm::make_early_inc_range(Body->getOps<ClipByNormOp>()))
      foldClip(Clip);
    Unscales Folded = findUnscales(*Body);
    for (GlobalNormOp Norm : llvm::to_vector(Body->getOps<GlobalNormOp>()))
      foldIntoNorm(Norm, Folded);
    for (Operation *Unscale : Folded)
      foldIntoUpdates(cast<UnscaleOp>(Unscale));
  }

private:
  // The update that reads its gradient here, or null.
  static OptimizerOpInterface updateBy(OpOperand &Use) {
    auto Update = dyn_cast<OptimizerOpInterface>(Use.getOwner());
    return Update && &Update.getGradientMutable() == &Use ? Update : OptimizerOpInterface();
  }

  static void readInstead(OptimizerOpInterface Update, Value Gradient, Value Scalar) {
    Update.getGradientMutable().set(Gradient);
    SmallVector<Value, 3> Scalars = {Scalar};
    llvm::append_range(Scalars, Update.getScalars());
    Update.getScalarsMutable().assign(Scalars);
  }

  static void foldClip(ClipByNormOp Clip) {
    SmallVector<OptimizerOpInterface> Updates;
    for (OpOperand &Use : Clip.getOutput().getUses()) {
      OptimizerOpInterface Update = updateBy(Use);
      if (!Update || Update.getUnscale() || !Update.getMaxNorm().isZero())
        return;
      Updates.push_back(Update);
    }
    for (OptimizerOpInterface Update : Updates) {
      readInstead(Update, Clip.getGradient(), Clip.getNorm());
      Update->setAttr("max_norm", Clip.getMaxNormAttr());
    }
    if (!Updates.empty())
      Clip.erase();
  }

  static bool unscalesAll(GlobalNormOp Norm, Value Scale, const Unscales &Folded) {
    return !Norm.getUnscale() && llvm::all_of(Norm.getGradients(), [&](Value Gradient) {
      auto Unscale = Gradient.getDefiningOp<UnscaleOp>();
      return Unscale && Unscale.getScale() == Scale && Folded.contains(Unscale);
    });
  }

  static bool canUnscale(OpOperand &Use, Value Scale, const Unscales &Folded) {
    if (OptimizerOpInterface Update = updateBy(Use))
      return !Update.getUnscale();
    auto Norm = dyn_cast<GlobalNormOp>(Use.getOwner());
    return Norm && unscalesAll(Norm, Scale, Folded);
  }

  // A norm unscales all of its gradients or none, so that one that stays keeps others.
  static Unscales findUnscales(Block &Body) {
    Unscales Folded;
    for (auto Unscale : Body.getOps<UnscaleOp>())
      if (!Unscale.getOutput().use_empty())
        Folded.insert(Unscale);
    auto Stays = [&](Operation *Op) {
      auto Unscale = cast<UnscaleOp>(Op);
      return llvm::any_of(Unscale.getOutput().getUses(),
                          [&](OpOperand &Use) { return !canUnscale(Use, Unscale.getScale(), Folded); });
    };
    bool Changed = true;
    while (Changed) {
      Changed = false;
      for (Operation *Op : llvm::to_vector(Folded))
        Changed |= Stays(Op) && Folded.remove(Op);
    }
    return Folded;
  }

  static void foldIntoNorm(GlobalNormOp Norm, const Unscales &Folded) {
    auto First = Norm.getInputs().front().getDefiningOp<UnscaleOp>();
    if (!First || !unscalesAll(Norm, First.getScale(), Folded))
      return;
    SmallVector<Value> Inputs = {First.getScale()};
    for (Value Gradient : Norm.getGradients())
      Inputs.push_back(Gradient.getDefiningOp<UnscaleOp>().getGradient());
    Norm.getInputsMutable().assign(Inputs);
    Norm.setUnscale(true);
  }

  static void foldIntoUpdates(UnscaleOp Unscale) {
    for (OpOperand &Use : llvm::make_early_inc_range(Unscale.getOutput().getUses())) {
      OptimizerOpInterface Update = updateBy(Use);
      readInstead(Update, Unscale.getGradient(), Unscale.getScale());
      Update->setAttr("unscale", BoolAttr::get(Unscale.getContext(), true));
    }
    Unscale.erase();
  }
};

} // namespace

} // namespace mpc
