// Moves relu behind operations that it commutes with, where that leaves less to save for its derivative.
//
//   %r = mpc.relu %x : tensor<2x3x4x4xf32>
//   %y, %i = mpc.max_pool2d %r {kernel_size = [2, 2], strides = [2, 2]} : ...
// becomes
//   %p, %i = mpc.max_pool2d %x {kernel_size = [2, 2], strides = [2, 2]} : ...
//   %y = mpc.relu %p : tensor<2x3x2x2xf32>
//
// A short sweep, which moves two operations and replaces none.
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
    getOperation().walk([](Operation *op) {
      if (!isa<MaxPool2dOp, DropoutOp>(op))
        return;
      if (ReluOp relu = reluBehind(op->getOperand(0), op->getResult(0)))
        sink(relu, op);
    });
  }

private:
  // The relu whose result Operand is, directly or behind reshapes and transposes. Nothing else reads the result, and
  // nothing from relu's operand to Result rounds. Null: there is none.
  static ReluOp reluBehind(Value operand, Value result) {
    Type element = getElementTypeOrSelf(result);
    auto isSole = [&](Value v) { return v.hasOneUse() && getElementTypeOrSelf(v) == element; };
    while (isSole(operand) && operand.getDefiningOp() && has<Property::ReordersElements>(operand.getDefiningOp()))
      operand = operand.getDefiningOp()->getOperand(0);
    auto relu = isSole(operand) ? operand.getDefiningOp<ReluOp>() : ReluOp();
    return relu && relu.getX().getType() == relu.getY().getType() ? relu : ReluOp();
  }

  static void sink(ReluOp relu, Operation *op) {
    relu.getY().replaceAllUsesWith(relu.getX());
    relu->moveAfter(op);
    Value result = op->getResult(0);
    result.replaceAllUsesWith(relu.getY());
    relu.getXMutable().assign(result);
    relu.getY().setType(cast<RankedTensorType>(result.getType()));
  }
};

} // namespace

} // namespace mpc
