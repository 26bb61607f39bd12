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
#include "compiler/dialect/attribute_conversion.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/step_limits.h"
#include "kernels/known_attributes.h"
#include "mlir/IR/Matchers.h"
#include "passes/passes.h"
#include "passes/step/process_state.h"
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

bool requestsGradients(func::FuncOp function) {
  return llvm::any_of(function.getBody().front(), [](Operation &op) { return isLossRequest(&op); });
}

class LossScalePass : public impl::LossScalePassBase<LossScalePass> {
public:
  using LossScalePassBase::LossScalePassBase;

  void runOnOperation() override {
    if (failed(checkOptions()) || failed(checkExchanges()))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      // Other blocks are unreachable: nothing branches.
      if (function.isExternal() || !isa<func::ReturnOp>(function.getBody().front().getTerminator()))
        continue;
      if (failed(wrap(function)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult checkOptions() {
    if (mode != "none" && mode != "static" && mode != "dynamic")
      return getOperation().emitError() << "unknown loss-scale mode '" << mode << "'; choose none, static or dynamic";
    if (numLosses < 1 || numLosses > kMostLosses)
      return getOperation().emitError() << "num-losses must be at least 1 and at most " << kMostLosses << ", got "
                                        << int64_t(numLosses);
    if (accumulationSteps < 1 || accumulationSteps > kMostAccumulationSteps)
      return getOperation().emitError() << "accumulation-steps must be at least 1 and at most "
                                        << kMostAccumulationSteps << ", got " << int64_t(accumulationSteps);
    if (processes < 1 || !llvm::isPowerOf2_64(uint64_t(processes)))
      return getOperation().emitError() << "processes must be a power of two, got " << int64_t(processes);
    if (processes > kMostProcesses)
      return getOperation().emitError() << "processes must be at most " << kMostProcesses << ", got "
                                        << int64_t(processes);
    if (communicationDtype != "f32" && communicationDtype != "f16" && communicationDtype != "bf16")
      return getOperation().emitError() << "unknown communication-dtype '" << communicationDtype
                                        << "'; choose f32, f16 or bf16";
    if (communicationDtype != "f32" && !llvm::isPowerOf2_64(uint64_t(accumulationSteps)))
      return getOperation().emitError() << "accumulation-steps must be a power of two where communication-dtype is "
                                        << communicationDtype << ", got " << int64_t(accumulationSteps);
    if (processes > 1 && !llvm::isPowerOf2_64(uint64_t(accumulationSteps)))
      return getOperation().emitError() << "accumulation-steps must be a power of two where processes is "
                                        << int64_t(processes) << ", got " << int64_t(accumulationSteps);
    return checkLastMicroStep();
  }

  LogicalResult checkLastMicroStep() {
    if (lastMicroStep || (processes > 1 && accumulationSteps > 1))
      return success();
    return getOperation().emitError() << "last-micro-step=false is for several processes that accumulate; processes is "
                                      << int64_t(processes) << ", and accumulation-steps is "
                                      << int64_t(accumulationSteps);
  }

  // How many micro-batches a process runs would change what the network exchanges. Wraps of an earlier run are marked.
  LogicalResult checkExchanges() {
    if (processes == 1 || accumulationSteps == 1)
      return success();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (dialectOf(function).getProcessesAttrHelper().isAttrPresent(function))
        continue;
      WalkResult found = function.walk([&](Operation *op) {
        if (!has<Property::Collective>(op) || kernelAttributes(op).Get(attribute::kProcesses) == 1)
          return WalkResult::advance();
        op->emitError() << "the network exchanges values of its own between " << int64_t(processes)
                        << " processes, and each accumulates " << int64_t(accumulationSteps)
                        << " micro-batches of an update; take accumulation-steps = 1";
        return WalkResult::interrupt();
      });
      if (found.wasInterrupted())
        return failure();
    }
    return success();
  }

  // A scaler of the step's own says what is skipped.
  LogicalResult guardTraced(func::FuncOp function, const StepFlow &flow, const ProcessMean &sharing) {
    if (accumulationSteps > 1)
      return function.emitError() << "'" << function.getName()
                                  << "' has a scaler of its own: it cannot be run in accumulated micro-steps";
    StepEdit edit(function, flow);
    MicroSteps one(edit, /*count=*/1, sharing, /*isLast=*/true);
    if (failed(shareState(edit, one)))
      return failure();
    guardTracedScaling(function, flow);
    return sharing.isAlone() ? success() : shareTracedScaling(function, sharing);
  }

  GradientExchange exchange() {
    Builder builder(&getContext());
    FloatType low = communicationDtype == "f16"    ? FloatType(builder.getF16Type())
                    : communicationDtype == "bf16" ? FloatType(builder.getBF16Type())
                                                   : FloatType();
    return {processes, gradientsMean, low};
  }

  // Nothing would skip the update of a sum that has overflowed.
  LogicalResult checkLowSum(func::FuncOp function, const ProcessMean &sharing, bool isChecked) {
    bool adds = accumulationSteps > 1 || !sharing.isAlone();
    if (isChecked || !adds || communicationDtype != "f16")
      return success();
    return function.emitError() << "'" << function.getName()
                                << "' has no loss scale: an f16 sum of its gradients may overflow, and no check would"
                                   " see it; communication-dtype may be bf16 or f32";
  }

  LogicalResult wrap(func::FuncOp function) {
    auto marked = dialectOf(function).getProcessesAttrHelper();
    if (!requestsGradients(function) || accumulates(function) || marked.isAttrPresent(function))
      return success();
    ProcessMean sharing(exchange());
    if (!sharing.isAlone()) {
      joinStatistics(function);
      marked.setAttr(function, Builder(&getContext()).getI64IntegerAttr(processes));
    }
    StepFlow flow(function);
    if (hasTracedScaling(function))
      return guardTraced(function, flow, sharing);
    WrapOptions options{mode != "none", skip, unscale, numLosses, accumulationSteps, exchange(), lastMicroStep};
    for (const GradientRequest &request : flow.getRequests()) {
      if (!options.scaled || matchPattern(request.seed().get(), m_OneFloat()))
        continue;
      request.op->emitRemark() << "the step has a seed of its own: it is not wrapped in loss scaling";
      options.scaled = false;
    }
    if (failed(checkLowSum(function, sharing, options.scaled)))
      return failure();
    if (!options.scaled && accumulationSteps == 1 && sharing.isAlone())
      return success();
    return wrapStep(function, flow, options);
  }
};

} // namespace

} // namespace mpc
