// State that moves for several processes, with processes=2.
//
//   %mean2, %variance2 = mpc.batch_norm_running_update %mean, %variance, %m, %s {count = 8} : ...
//   %masked, %mask = mpc.dropout %x, %seed, %counter : ...
//   %counter2 = mpc.increment %counter : ...
// becomes
//   %ms = mpc.all_gather %m {processes = 2} : ...
//   %ss = mpc.all_gather %s {processes = 2} : ...
//   %mean2, %variance2 = mpc.batch_norm_running_update %mean, %variance, %ms, %ss {batches = 2, count = 8} : ...
//   %rank = mpc.process_rank {processes = 2} : ...
//   %drawn = mpc.int_add %counter, %rank : ...
//   %masked, %mask = mpc.dropout %x, %seed, %drawn : ...
//   %counter2 = mpc.increment %counter {by = 2} : ...
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "passes/step/process_mean.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc {

void ProcessMean::gatherStatistics(BatchNormRunningUpdateOp update) const {
  OpBuilder builder(update);
  for (OpOperand *batch : {&update.getMeanMutable(), &update.getVarianceMutable()}) {
    auto type = cast<RankedTensorType>(batch->get().getType());
    SmallVector<int64_t> shape{processes};
    llvm::append_range(shape, type.getShape());
    batch->set(AllGatherOp::create(builder, update.getLoc(), type.clone(shape), batch->get(), uint64_t(processes)));
  }
  update.setBatches(uint64_t(processes));
}

void ProcessMean::advanceGenerator(IncrementOp counter) const {
  Value before = counter.getCounter();
  OpBuilder builder(counter.getContext());
  if (Operation *definition = before.getDefiningOp())
    builder.setInsertionPointAfter(definition);
  else
    builder.setInsertionPointToStart(counter->getBlock());
  Value rank = ProcessRankOp::create(builder, counter.getLoc(), before.getType(), uint64_t(processes));
  Value drawn = IntAddOp::create(builder, counter.getLoc(), before.getType(), before, rank);
  before.replaceUsesWithIf(drawn, [&](OpOperand &use) {
    return use.getOwner() != drawn.getDefiningOp() && !use.getOwner()->hasTrait<StateUpdate>() &&
           !isa<func::ReturnOp>(use.getOwner());
  });
  counter.setBy(counter.getBy() * uint64_t(processes));
}

// Whether \p v is computed from the rows of the process: from an input, or from what a request computes of inputs.
static bool followsRows(Value v) {
  llvm::SetVector<Value> from;
  from.insert(v);
  for (size_t next = 0; next < from.size(); ++next) {
    Value each = from[next];
    if (!each.getDefiningOp()) {
      if (!isState(roleOf(each)))
        return true;
      continue;
    }
    from.insert(each.getDefiningOp()->operand_begin(), each.getDefiningOp()->operand_end());
  }
  return false;
}

LogicalResult ProcessMean::shareState(func::FuncOp function, const StepFlow &flow) const {
  Operation *terminator = function.getBody().front().getTerminator();
  StepSignature signature(function);
  for (OpOperand &use : terminator->getOpOperands()) {
    std::optional<unsigned> argument = signature.argumentOf(use.getOperandNumber());
    Operation *definition = use.get().getDefiningOp();
    if (!argument || !definition || isa<BatchNormRunningUpdateOp>(definition))
      continue;
    bool followsUpdate = false;
    (void)flow.behind(use.get(), followsUpdate);
    if (followsUpdate || flow.isOptimizer(definition) || !followsRows(use.get()))
      continue;
    return definition->emitError() << "'" << nameOf(function.getArgument(*argument))
                                   << "' would move by the rows of one of " << processes
                                   << " processes alone; state that the update does not compute may not depend on rows";
  }
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (auto update = dyn_cast<BatchNormRunningUpdateOp>(op))
      gatherStatistics(update);
    else if (auto counter = dyn_cast<IncrementOp>(op); counter && flow.roleOf(counter.getCounter()) == Role::kRng)
      advanceGenerator(counter);
  }
  return success();
}

} // namespace mpc
