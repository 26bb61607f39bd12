// relu after max pooling instead of before it: the largest of several values and relu commute.
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
    getOperation().walk([](MaxPool2dOp Pool) {
      auto Relu = Pool.getX().getDefiningOp<ReluOp>();
      if (Relu && Relu.getY().hasOneUse() && Relu.getX().getType() == Relu.getY().getType())
        sink(Relu, Pool);
    });
  }

private:
  static void sink(ReluOp Relu, MaxPool2dOp Pool) {
    Pool.getXMutable().assign(Relu.getX());
    Relu->moveAfter(Pool);
    Pool.getY().replaceAllUsesWith(Relu.getY());
    Relu.getXMutable().assign(Pool.getY());
    Relu.getY().setType(Pool.getY().getType());
  }
};

} // namespace

} // namespace mpc
