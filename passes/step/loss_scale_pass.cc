// Wraps a training step in a loss scale: decides which functions are wrapped, and how.
//
//   %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%one) {wrt = array<i64: 0>} : ...
//   %w2, %v2 = mpc.momentum %w, %v, %dw, %rate : ...
// becomes, with mode=dynamic,
//   %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%scale) {wrt = array<i64: 0>} : ...
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
bool accumulates(func::FuncOp function) { return !function.getOps<NextMicroStepOp>().empty(); }

class LossScalePass : public impl::LossScalePassBase<LossScalePass> {
public:
  using LossScalePassBase::LossScalePassBase;

  void runOnOperation() override {
    if (failed(checkOptions()))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      // Other blocks are unreachable: nothing branches.
      if (function.isExternal() || !isa<func::ReturnOp>(function.getBody().front().getTerminator()))
        continue;
      if (failed(wrap(function)))
        return signalPassFailure();
      if (allReduce)
        sumOverProcesses(function);
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

  LogicalResult wrap(func::FuncOp function) {
    StepFlow flow(function);
    if (flow.getRequests().empty() || accumulates(function))
      return success();
    if (hasTracedScaling(function)) {
      if (accumulationSteps > 1)
        return function.emitError() << "'" << function.getName()
                                    << "' has a scaler of its own: it cannot be run in accumulated micro-steps";
      guardTracedScaling(function, flow);
      return success();
    }
    WrapOptions options{mode != "none", skip, unscale, numLosses, accumulationSteps};
    for (const GradientRequest &request : flow.getRequests()) {
      if (!options.scaled || matchPattern(request.seed().get(), m_OneFloat()))
        continue;
      request.op->emitRemark() << "the step has a seed of its own: it is not wrapped in loss scaling";
      options.scaled = false;
    }
    if (!options.scaled && accumulationSteps == 1)
      return success();
    return wrapStep(function, flow, options);
  }

  // Operations that check, scale, add up or update by a gradient read the sum.
  static void sumOverProcesses(func::FuncOp function) {
    StepFlow flow(function);
    for (const GradientRequest &request : flow.getRequests()) {
      OpBuilder builder(request.op->getContext());
      builder.setInsertionPointAfter(request.op);
      for (Value gradient : request.gradients) {
        if (gradient.hasOneUse() && isa<AllReduceOp>(*gradient.user_begin()))
          continue;
        auto sum = AllReduceOp::create(builder, request.op->getLoc(), gradient.getType(), gradient);
        gradient.replaceAllUsesExcept(sum.getY(), sum);
      }
    }
  }
};

} // namespace

} // namespace mpc
