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
// Statistics that have the same bits in all processes, as those that were computed from an mpc.all_gather, stay.
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

// The counter of a random generator.
static bool isGenerator(Operation *op, const StepFlow &flow) {
  auto counter = dyn_cast<IncrementOp>(op);
  return counter && flow.roleOf(counter.getCounter()) == Role::kRng;
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
    auto network = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(request, request.getCalleeAttr());
    return network && !network.isExternal() ? network : func::FuncOp();
  }

  llvm::DenseMap<Block *, ValueAndGradOp> callers; ///< the request of each network's body; of several the first
};

} // namespace

LogicalResult ProcessMean::shareState(func::FuncOp function, const StepFlow &flow) const {
  Operation *terminator = function.getBody().front().getTerminator();
  StepSignature signature(function);
  for (OpOperand &use : terminator->getOpOperands()) {
    std::optional<unsigned> argument = signature.argumentOf(use.getOperandNumber());
    Operation *definition = use.get().getDefiningOp();
    if (!argument || !definition || isa<BatchNormRunningUpdateOp>(definition) || isGenerator(definition, flow))
      continue;
    bool followsUpdate = false;
    (void)flow.behind(use.get(), followsUpdate);
    if (followsUpdate || flow.isOptimizer(definition) || !Differences().mayDiffer(use.get()))
      continue;
    return definition->emitError() << "'" << nameOf(function.getArgument(*argument))
                                   << "' would move by the rows of one of " << processes
                                   << " processes alone; state that the update does not compute may not depend on rows";
  }
  for (Operation &op : llvm::make_early_inc_range(function.getBody().front())) {
    if (auto update = dyn_cast<BatchNormRunningUpdateOp>(op)) {
      if (Differences().mayDiffer(update.getMean()) || Differences().mayDiffer(update.getVariance()))
        gatherStatistics(update);
    } else if (isGenerator(&op, flow)) {
      advanceGenerator(cast<IncrementOp>(op));
    }
  }
  return success();
}

} // namespace mpc
