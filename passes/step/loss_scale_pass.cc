// Wraps a training step in a loss scale: decides which functions are wrapped, and how.
//
//   %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%one) {wrt = [0]} : ...
//   %w2, %v2 = mpc.momentum %w, %v, %dw, %rate : ...
// becomes, with mode=dynamic,
//   %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%scale) {wrt = [0]} : ...
//   %finite, %first_bad = mpc.all_finite %scale, %l, %dw : ...
//   %new:2 = mpc.guarded_update %finite else(%w, %v) {
//     %u = mpc.unscale %dw, %scale : ...
//     %w2, %v2 = mpc.momentum %w, %v, %u, %rate : ...
//     mpc.yield %w2, %v2 : ...
//   } : ...
//   %scale2, %good2, ... = mpc.update_loss_scale %first_bad, %scale, %good, ...
#include "mlir/IR/Matchers.h"
#include "passes/passes.h"
#include "passes/step/step_wrap.h"
#include "passes/step/traced_scaling.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_LOSSSCALEPASS
#include "passes/passes.h.inc"

namespace {

// Whether an earlier run of the pass made micro-steps of it. A scaler that an earlier run added is as good as one that
// was traced by hand: its updates are guarded.
bool accumulates(func::FuncOp Function) { return !Function.getOps<NextMicroStepOp>().empty(); }

class LossScalePass : public impl::LossScalePassBase<LossScalePass> {
public:
  using LossScalePassBase::LossScalePassBase;

  void runOnOperation() override {
    if (failed(checkOptions()))
      return signalPassFailure();
    for (auto Function : getOperation().getOps<func::FuncOp>()) {
      // Other blocks are unreachable: nothing branches.
      if (Function.isExternal() || !isa<func::ReturnOp>(Function.getBody().front().getTerminator()))
        continue;
      if (failed(wrap(Function)))
        return signalPassFailure();
      if (allReduce)
        sumOverProcesses(Function);
    }
  }

private:
  LogicalResult checkOptions() {
    if (mode != "none" && mode != "static" && mode != "dynamic")
      return getOperation().emitError() << "unknown loss-scale mode '" << mode << "'; choose none, static or dynamic";
    if (numLosses < 1)
      return getOperation().emitError() << "num-losses must be at least 1, got " << int64_t(numLosses);
    if (accumulationSteps < 1)
      return getOperation().emitError() << "accumulation-steps must be at least 1, got " << int64_t(accumulationSteps);
    return success();
  }

  LogicalResult wrap(func::FuncOp Function) {
    StepFlow Flow(Function);
    if (Flow.requests().empty() || accumulates(Function))
      return success();
    if (hasTracedScaling(Function)) {
      if (accumulationSteps > 1)
        return Function.emitError() << "'" << Function.getName()
                                    << "' has a scaler of its own: it cannot be run in accumulated micro-steps";
      guardTracedScaling(Function, Flow);
      return success();
    }
    WrapOptions Options{mode != "none", skip, unscale, numLosses, accumulationSteps};
    for (const GradientRequest &Request : Flow.requests()) {
      if (!Options.Scaled || matchPattern(Request.seed().get(), m_OneFloat()))
        continue;
      Request.Op->emitRemark() << "the step has a seed of its own: it is not wrapped in loss scaling";
      Options.Scaled = false;
    }
    if (!Options.Scaled && accumulationSteps == 1)
      return success();
    return StepWrap(Function, Flow, Options).run();
  }

  // Operations that check, scale, add up or update by a gradient read the sum.
  static void sumOverProcesses(func::FuncOp Function) {
    StepFlow Flow(Function);
    for (const GradientRequest &Request : Flow.requests()) {
      OpBuilder Builder(Request.Op->getContext());
      Builder.setInsertionPointAfter(Request.Op);
      for (Value Gradient : Request.Gradients) {
        if (Gradient.hasOneUse() && isa<AllReduceOp>(*Gradient.user_begin()))
          continue;
        auto Sum = AllReduceOp::create(Builder, Request.Op->getLoc(), Gradient.getType(), Gradient);
        Gradient.replaceAllUsesExcept(Sum.getY(), Sum);
      }
    }
  }
};

} // namespace

} // namespace mpc
