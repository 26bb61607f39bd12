// Makes gelu a part of the product that it is applied to, where nothing else reads the product.
//
//   %z = mpc.matmul %x, %w, %b : ...
//   %y = mpc.gelu %z {approximate = tanh} : tensor<32x336xbf16>
// becomes
//   %y = mpc.matmul %x, %w, %b {activation = gelu_tanh} : ...
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/target_model.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_FOLDACTIVATIONPASS
#include "passes/passes.h.inc"

namespace {

class FoldActivationPass : public impl::FoldActivationPassBase<FoldActivationPass> {
public:
  using FoldActivationPassBase::FoldActivationPassBase;

  void runOnOperation() override {
    FailureOr<std::unique_ptr<TargetModel>> Target = targetModelOf(getOperation());
    if (failed(Target))
      return signalPassFailure();
    if (!(*Target)->foldsGelu())
      return;
    getOperation().walk([](GeluOp Gelu) {
      if (Operation *Product = productOf(Gelu))
        fold(Gelu, Product);
    });
  }

private:
  // The product or convolution whose result only gelu reads, maybe behind reshapes. Nothing but its own rounding lies
  // in between. Null: there is none.
  static Operation *productOf(GeluOp Gelu) {
    Type Element = getElementTypeOrSelf(Gelu.getY());
    auto IsSole = [&](Value V) { return V.hasOneUse() && getElementTypeOrSelf(V) == Element; };
    Value X = Gelu.getX();
    while (IsSole(X) && X.getDefiningOp<ReshapeOp>())
      X = X.getDefiningOp<ReshapeOp>().getX();
    Operation *Product = IsSole(X) ? X.getDefiningOp() : nullptr;
    if (!Product || !has<Property::TakesActivation>(Product) || activationOf(Product) != "none")
      return nullptr;
    // oneDNN's convolutions in bf16 take longer with gelu than without it and a region (docs/fusion.md).
    if (isa<Conv2dOp>(Product) && Element.isBF16())
      return nullptr;
    // Both must belong to the same recompute call. Otherwise the backward pass would compute only one of them again.
    return recomputeCallOf(Product) == recomputeCallOf(Gelu) ? Product : nullptr;
  }

  static StringRef activationOf(Operation *Product) {
    if (auto Matmul = dyn_cast<MatmulOp>(Product))
      return Matmul.getActivation();
    return cast<Conv2dOp>(Product).getActivation();
  }

  static void fold(GeluOp Gelu, Operation *Product) {
    StringRef Activation = Gelu.getApproximate() == "tanh" ? "gelu_tanh" : "gelu";
    Product->setAttr("activation", StringAttr::get(Product->getContext(), Activation));
    Product->setLoc(FusedLoc::get(Product->getContext(), {Product->getLoc(), Gelu.getLoc()}));
    Gelu.getY().replaceAllUsesWith(Gelu.getX());
    Gelu.erase();
  }
};

} // namespace

} // namespace mpc
