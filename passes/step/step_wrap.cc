// The order in which the parts of a wrap change a step. Each part shows its own change on top of its file.
//
//   %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%one) {wrt = array<i64: 0>} : ...
//   %half = mpc.mul_scalar %dw {value = 0.5} : tensor<4xf32>
//   %w2, %v2 = mpc.momentum %w, %v, %half, %rate : ...
// becomes
//   %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%scale) {wrt = array<i64: 0>} : ...
//   %finite, %first_bad = mpc.all_finite %scale, %l, %dw : ...
//   %u = mpc.unscale %dw, %scale : ...
//   %half = mpc.mul_scalar %u {value = 0.5} : tensor<4xf32>
//   %new:2 = mpc.guarded_update %finite else(%w, %v) {
//     %w2, %v2 = mpc.momentum %w, %v, %half, %rate : ...
//     mpc.yield %w2, %v2 : ...
//   } : ...
//   %scale2, %good2, ... = mpc.update_loss_scale %first_bad, %scale, %good, ... : ...
#include "passes/step/step_wrap.h"

#include "compiler/dialect/operation_attributes.h"
#include "passes/step/loss_weight.h"
#include "passes/step/process_state.h"
#include "passes/step/state_selects.h"
#include "passes/step/step_records.h"
#include "passes/step/update_guards.h"

using namespace mlir;

namespace mpc {

namespace {

// The parts are made while the step is as it was: they look at it. Then each of them changes it.
class StepWrap {
public:
  StepWrap(func::FuncOp function, const StepFlow &flow, const WrapOptions &options)
      : options(options), edit(function, flow),
        microSteps(edit, options.accumulationSteps, ProcessMean(options.exchange), options.lastMicroStep),
        scalers(edit, microSteps, options.unscale), norms(edit, microSteps.takesMeans()),
        checks(edit, scalers, microSteps, norms), predicates(edit, checks, microSteps, options.scaled && options.skip),
        guards(edit, scalers, predicates), selects(edit, predicates), records(edit, scalers, checks, norms) {}

  LogicalResult run() {
    if (options.scaled && failed(scalers.assign(options.numLosses)))
      return failure();
    markStep(edit.function);
    scalers.addArguments();
    microSteps.addNumber();
    if (failed(shareState(edit, microSteps)))
      return failure();

    // What is found, and what gradients become.
    checks.addChecks();
    for (auto [request, asked] : llvm::enumerate(edit.getRequests()))
      if (failed(passOnGradients(asked, request)))
        return failure();
    // Norms of a part of the sum decide nothing where another function has the whole.
    if (microSteps.updates())
      norms.addTo(checks);

    // State that the step has.
    guards.addGuards();
    selects.addSelects();

    // State and records that the wrap adds.
    scalers.appendResults(checks.getFindings());
    microSteps.appendResults();
    records.appendResults(microSteps);
    if (!microSteps.updates())
      holdState(edit);
    return success();
  }

private:
  // Everything but the guarded updates sees unscaled gradients: the user's own arithmetic, the sum over losses, an
  // unguarded optimizer. With several micro-steps or processes all see the mean so far. Sums that may overflow are
  // checked, where there are checks.
  LogicalResult passOnGradients(const GradientRequest &asked, unsigned request) {
    Operation *check = options.scaled ? checks.getChecks()[request] : AllFiniteOp();
    bool checksSums = options.scaled && microSteps.mayOverflow() && microSteps.updates();
    SmallVector<Value> sums;
    edit.builder.setInsertionPointAfter(checks.endOf(request));
    FailureOr<WeightedMean> weights = WeightedMean::of(request, edit, microSteps);
    if (failed(weights))
      return failure();
    for (auto [position, gradient] : llvm::enumerate(asked.gradients)) {
      SmallVector<OpOperand *> outside;
      for (OpOperand &use : gradient.getUses())
        if (use.getOwner() != check && (microSteps.takesMeans() || !guards.contains(use.getOwner())))
          outside.push_back(&use);
      // A check counts the positions of all gradients.
      if (outside.empty() && !checksSums)
        continue;
      bool unscalesSum = microSteps.addsLow();
      Value term = unscalesSum ? gradient : scalers.unscale(request, gradient);
      term = weights->weigh(edit.builder, edit.loc, term);
      Value sum = microSteps.meanSoFar(request, position, term);
      sums.push_back(sum);
      Value seen = weights->normalize(edit.builder, edit.loc, unscalesSum ? scalers.unscale(request, sum) : sum);
      for (OpOperand *use : outside)
        use->set(seen);
    }
    if (checksSums)
      checks.addCheckOfSums(request, sums, /*areScaled=*/microSteps.addsLow());
    return success();
  }

  WrapOptions options;
  StepEdit edit;
  MicroSteps microSteps;
  StepScalers scalers;
  CheckedNorms norms;
  FiniteChecks checks;
  UpdatePredicates predicates;
  UpdateGuards guards;
  StateSelects selects;
  StepRecords records;
};

} // namespace

LogicalResult wrapStep(func::FuncOp function, const StepFlow &flow, const WrapOptions &options) {
  return StepWrap(function, flow, options).run();
}

} // namespace mpc
