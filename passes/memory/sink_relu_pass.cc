// Moves relu behind operations that it commutes with, where that leaves less to save for its derivative.
//
//   %r = mpc.relu %x : tensor<2x3x4x4xf32>
//   %y, %i = mpc.max_pool2d %r {kernel_size = [2, 2], strides = [2, 2]} : ...
// becomes
//   %p, %i = mpc.max_pool2d %x {kernel_size = [2, 2], strides = [2, 2]} : ...
//   %y = mpc.relu %p : tensor<2x3x2x2xf32>
#include "compiler/dialect/dialect.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_SINKRELUPASS
#include "passes/passes.h.inc"

namespace {

class SinkReluPass : public impl::SinkReluPassBase<SinkReluPass> {
public:
  using SinkReluPassBase::SinkReluPassBase;

  void runOnOperation() override {
    getOperation().walk([](Operation *Op) {
      if (!isa<MaxPool2dOp, DropoutOp>(Op))
        return;
      if (ReluOp Relu = reluBehind(Op->getOperand(0), Op->getResult(0)))
        sink(Relu, Op);
    });
  }

private:
  // The relu whose result Operand is, directly or behind reshapes and transposes. Nothing else reads the result, and
  // nothing from relu's operand to Result rounds. Null: there is none.
  static ReluOp reluBehind(Value Operand, Value Result) {
    Type Element = getElementTypeOrSelf(Result);
    auto IsSole = [&](Value V) { return V.hasOneUse() && getElementTypeOrSelf(V) == Element; };
    while (IsSole(Operand) && Operand.getDefiningOp() && has<Property::ReordersElements>(Operand.getDefiningOp()))
      Operand = Operand.getDefiningOp()->getOperand(0);
    auto Relu = IsSole(Operand) ? Operand.getDefiningOp<ReluOp>() : ReluOp();
    return Relu && Relu.getX().getType() == Relu.getY().getType() ? Relu : ReluOp();
  }

  static void sink(ReluOp Relu, Operation *Op) {
    Relu.getY().replaceAllUsesWith(Relu.getX());
    Relu->moveAfter(Op);
    Value Result = Op->getResult(0);
    Result.replaceAllUsesWith(Relu.getY());
    Relu.getXMutable().assign(Result);
    Relu.getY().setType(cast<RankedTensorType>(Result.getType()));
  }
};

} // namespace

} // namespace mpc
