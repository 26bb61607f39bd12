// State that moves for several processes, with processes=2.
//
//   %mean2, %variance2 = mpc.batch_norm_running_update %mean, %variance, %m, %s {count = 8} : ...
//   %masked, %mask = mpc.dropout %x, %seed, %counter : ...
//   %counter2 = mpc.increment %counter : ...
// becomes
//   %ms = mpc.all_gather %m {processes = 2} : ...
//   %weighted = mpc.mul_scalar %s {value = 0.114285745} : ...
//   %ss = mpc.all_gather %weighted {processes = 2} : ...
//   %mean2, %variance2 = mpc.batch_norm_running_update %mean, %variance, %ms, %ss {batches = 2, count = 0} : ...
//   %rank = mpc.process_rank {processes = 2} : ...
//   %drawn = mpc.int_add %counter, %rank : ...
//   %masked, %mask = mpc.dropout %x, %seed, %drawn : ...
//   %counter2 = mpc.increment %counter {by = 2} : ...
// Statistics that have the same bits in all processes, as those that were computed from an mpc.all_gather, stay.
//
// Batches of an update may differ in their rows. So each process multiplies its variance by what a running variance
// takes of it: (1 - momentum) * count / (count - 1). A count of 0 says so, and all processes run the same update.
#include "passes/step/process_state.h"

#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "kernels/scalar/running_statistics.h"
#include "passes/computations.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc {

// The batches of an update along a first axis.
static Value rowsOf(OpBuilder &builder, BatchNormRunningUpdateOp update, Value statistics) {
  if (update.getBatches() > 1)
    return statistics;
  auto type = cast<RankedTensorType>(statistics.getType());
  SmallVector<int64_t> shape{1};
  llvm::append_range(shape, type.getShape());
  return ReshapeOp::create(builder, update.getLoc(), type.clone(shape), statistics, shape);
}

static Value joinRows(OpBuilder &builder, Value first, Value then) {
  auto type = cast<RankedTensorType>(first.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.front() += cast<RankedTensorType>(then.getType()).getDimSize(0);
  return ConcatOp::create(builder, then.getLoc(), type.clone(shape), ValueRange{first, then},
                          builder.getI64IntegerAttr(0));
}

static bool mayJoin(BatchNormRunningUpdateOp first, BatchNormRunningUpdateOp then) {
  return first && first.getNewVariance() == then.getRunningVariance() && first.getNewMean().hasOneUse() &&
         first.getNewVariance().hasOneUse() && !first.getPredicate() && !then.getPredicate() &&
         first.getMomentum() == then.getMomentum() && first.getCount() == then.getCount();
}

void joinStatistics(func::FuncOp function) {
  for (auto then : llvm::make_early_inc_range(function.getBody().front().getOps<BatchNormRunningUpdateOp>())) {
    auto first = then.getRunningMean().getDefiningOp<BatchNormRunningUpdateOp>();
    if (!mayJoin(first, then))
      continue;
    OpBuilder builder(then);
    Value mean = joinRows(builder, rowsOf(builder, first, first.getMean()), rowsOf(builder, then, then.getMean()));
    Value variance =
        joinRows(builder, rowsOf(builder, first, first.getVariance()), rowsOf(builder, then, then.getVariance()));
    then.getMeanMutable().set(mean);
    then.getVarianceMutable().set(variance);
    then.getRunningMeanMutable().set(first.getRunningMean());
    then.getRunningVarianceMutable().set(first.getRunningVariance());
    then.setBatches(first.getBatches() + then.getBatches());
    first.erase();
  }
}

namespace {

// Finds whether a value may differ between processes. They have equal state but for what generators draw, and rows of
// their own. What a collective operation computes is equal again, but for the rank.
class Differences {
public:
  bool mayDiffer(Value v) {
    llvm::SetVector<Value> from;
    from.insert(v);
    for (size_t next = 0; next < from.size(); ++next) {
      Value each = from[next];
      if (auto argument = dyn_cast<BlockArgument>(each)) {
        if (!follow(argument, from))
          return true;
        continue;
      }
      Operation *op = each.getDefiningOp();
      if (isa<ProcessRankOp>(op))
        return true;
      if (!has<Property::Collective>(op))
        follow(cast<OpResult>(each), from);
    }
    return false;
  }

private:
  // An output of a network is what its function returns. A gradient follows from all that the network reads.
  void follow(OpResult result, llvm::SetVector<Value> &from) {
    Operation *op = result.getOwner();
    auto request = dyn_cast<ValueAndGradOp>(op);
    func::FuncOp network = request ? networkOf(request) : func::FuncOp();
    bool isOutput = network && result.getResultNumber() + request.getWrt().size() < op->getNumResults();
    if (!isOutput || callers.try_emplace(&network.getBody().front(), request).first->second != request) {
      from.insert(op->operand_begin(), op->operand_end());
      return;
    }
    from.insert(network.getBody().front().getTerminator()->getOperand(result.getResultNumber()));
  }

  // Returns false where the argument itself differs.
  bool follow(BlockArgument argument, llvm::SetVector<Value> &from) {
    auto caller = callers.find(argument.getOwner());
    if (caller == callers.end())
      return isState(roleOf(argument)) && roleOf(argument) != Role::kRng;
    from.insert(caller->second.getInputs()[argument.getArgNumber()]);
    return true;
  }

  static func::FuncOp networkOf(ValueAndGradOp request) {
    func::FuncOp network = request.getFunction();
    return network && !network.isExternal() ? network : func::FuncOp();
  }

  llvm::DenseMap<Block *, ValueAndGradOp> callers; ///< the request of each network's body; of several the first
};

class SharedState {
public:
  SharedState(StepEdit &edit, MicroSteps &steps) : edit(edit), steps(steps) {}

  LogicalResult run() {
    if (failed(checkState()))
      return failure();
    for (Operation &op : llvm::make_early_inc_range(edit.getBody())) {
      if (auto update = dyn_cast<BatchNormRunningUpdateOp>(op)) {
        if (failed(checkStatistics(update)))
          return failure();
        if (Differences().mayDiffer(update.getMean()) || Differences().mayDiffer(update.getVariance()))
          gatherStatistics(update);
      } else if (edit.flow.isGenerator(&op)) {
        advanceGenerator(cast<IncrementOp>(op));
      }
    }
    return success();
  }

private:
  LogicalResult checkState() const;
  LogicalResult checkStatistics(BatchNormRunningUpdateOp update) const;
  void gatherStatistics(BatchNormRunningUpdateOp update);
  void advanceGenerator(IncrementOp counter) const;

  StepEdit &edit;
  MicroSteps &steps;
};

} // namespace

LogicalResult SharedState::checkState() const {
  StepSignature signature(edit.function);
  for (OpOperand &use : edit.returnOp->getOpOperands()) {
    std::optional<unsigned> argument = signature.argumentOf(use.getOperandNumber());
    if (!argument || use.get() == edit.function.getArgument(*argument))
      continue;
    // Null: it is an argument, an input or another state.
    Operation *definition = use.get().getDefiningOp();
    if (definition && (isa<BatchNormRunningUpdateOp>(definition) || edit.flow.isGenerator(definition)))
      continue;
    bool followsUpdate = false;
    (void)edit.flow.behind(use.get(), followsUpdate);
    if (followsUpdate || (definition && edit.flow.isOptimizer(definition)))
      continue;
    Operation *place = definition ? definition : edit.returnOp;
    StringRef name = nameOf(edit.function.getArgument(*argument));
    if (Differences().mayDiffer(use.get()))
      return place->emitError() << "'" << name << "' would move by the rows of one of " << steps.getProcesses().size()
                                << " processes alone; state that the update does not compute may not depend on "
                                   "rows";
    if (steps.accumulates())
      return place->emitError() << "'" << name << "' moves in every micro-batch, and none of "
                                << steps.getProcesses().size() << " processes runs all " << steps.batchesOfUpdate()
                                << " of an update; let it follow from what the update computes";
  }
  return success();
}

LogicalResult SharedState::checkStatistics(BatchNormRunningUpdateOp update) const {
  for (Value running : {update.getRunningMean(), update.getRunningVariance()}) {
    StringRef name = nameOf(stateBefore(running));
    if (running.getDefiningOp<BatchNormRunningUpdateOp>())
      return update.emitError() << "'" << name << "' moves several times in a micro-batch, by batches that differ in "
                                << "their elements or momentum; several processes cannot keep that order";
    for (Operation *user : running.getUsers())
      for (unsigned request = 0; user != update && request < edit.getRequests().size(); ++request)
        if (edit.flow.lossDependsOn(request, user) || user == edit.getRequests()[request].op)
          return user->emitError() << "the loss follows from '" << name << "', which moves in every micro-batch; "
                                   << "several processes do not know what it is between those of an update";
  }
  return success();
}

// The product has the bits of the one that the update computes otherwise.
static Value weightedVariance(OpBuilder &builder, BatchNormRunningUpdateOp update) {
  float weight = scalar::VarianceWeight(update.getMomentum().convertToDouble(), int64_t(update.getCount()));
  Value variance = update.getVariance();
  return MulScalarOp::create(builder, update.getLoc(), variance.getType(), variance, APFloat(weight));
}

void SharedState::gatherStatistics(BatchNormRunningUpdateOp update) {
  OpBuilder builder(update);
  update.getVarianceMutable().set(weightedVariance(builder, update));
  update.setCount(0);
  uint64_t each = update.getBatches();
  bool gathered = true;
  for (auto [batch, running] : {std::pair(&update.getMeanMutable(), update.getRunningMean()),
                                std::pair(&update.getVarianceMutable(), update.getRunningVariance())}) {
    Value all = steps.ofAllBatches(builder, update.getLoc(), batch->get(), running);
    gathered = bool(all);
    if (!gathered)
      continue;
    // The batches of one micro-batch follow each other.
    if (each > 1) {
      auto type = cast<RankedTensorType>(all.getType());
      SmallVector<int64_t> shape(type.getShape().drop_front());
      shape.front() *= type.getDimSize(0);
      all = ReshapeOp::create(builder, update.getLoc(), type.clone(shape), all, shape);
    }
    batch->set(all);
  }
  if (gathered)
    update.setBatches(each * uint64_t(steps.batchesOfUpdate()));
}

void SharedState::advanceGenerator(IncrementOp counter) const {
  Value before = counter.getCounter();
  OpBuilder builder(counter.getContext());
  if (Operation *definition = before.getDefiningOp())
    builder.setInsertionPointAfter(definition);
  else
    builder.setInsertionPointToStart(counter->getBlock());
  Value number = steps.batchNumber(builder, counter.getLoc());
  Value drawn = IntAddOp::create(builder, counter.getLoc(), before.getType(), before, number);
  before.replaceUsesWithIf(drawn, [&](OpOperand &use) {
    return use.getOwner() != drawn.getDefiningOp() && !use.getOwner()->hasTrait<StateUpdate>() &&
           !isa<func::ReturnOp>(use.getOwner());
  });
  counter.setBy(counter.getBy() * uint64_t(steps.batchesOfUpdate()));
}

LogicalResult shareState(StepEdit &edit, MicroSteps &steps) {
  return steps.getProcesses().isAlone() ? success() : SharedState(edit, steps).run();
}

void holdState(StepEdit &edit) {
  StepSignature signature(edit.function);
  for (OpOperand &use : edit.returnOp->getOpOperands()) {
    std::optional<unsigned> argument = signature.argumentOf(use.getOperandNumber());
    if (argument && roleOf(edit.function.getArgument(*argument)) != Role::kAccumulator)
      use.set(edit.function.getArgument(*argument));
  }
  eraseDeadOperations(edit.getBody());
}

} // namespace mpc
