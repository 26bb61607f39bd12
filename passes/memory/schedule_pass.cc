// Applies the order that MemorySchedule finds, where the plan of the target gets smaller by it.
//
//   %a = mpc.cast %x : ...
//   %l = mpc.broadcast_to %s {shape = [64, 64]} : ...
//   %r = mpc.reduce_sum %l {axes = [0]} : ...
//   %y = mpc.add %a, %r : tensor<64xf32>
// becomes an order in which %a and the large %l are not live together.
//   %l = mpc.broadcast_to %s {shape = [64, 64]} : ...
//   %r = mpc.reduce_sum %l {axes = [0]} : ...
//   %a = mpc.cast %x : ...
//   %y = mpc.add %a, %r : tensor<64xf32>
#include "compiler/dialect/operation_properties.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/target_model.h"
#include "passes/memory/memory_schedule.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/passes.h.inc"

namespace {

class SchedulePass : public impl::SchedulePassBase<SchedulePass> {
public:
  using SchedulePassBase::SchedulePassBase;

  void runOnOperation() override {
    // One for all functions: it knows what the sequences take that were ordered before their callers.
    std::unique_ptr<TargetModel> target;
    for (func::FuncOp function : calleesFirst(llvm::to_vector(getOperation().getOps<func::FuncOp>())))
      if (!function.isExternal() && failed(schedule(function, target)))
        signalPassFailure();
  }

private:
  /// Finds \p target where it is null.
  static LogicalResult schedule(func::FuncOp function, std::unique_ptr<TargetModel> &target) {
    if (!function.getBody().hasOneBlock())
      return function.emitError() << "mpc-schedule orders one block of operations, got "
                                  << function.getBody().getBlocks().size();
    if (!target) {
      FailureOr<std::unique_ptr<TargetModel>> found = targetModelOf(function);
      if (failed(found))
        return failure();
      target = std::move(*found);
    }
    lowerPeak(function, *target);
    return success();
  }

  /// Whether the packed weight of \p op lies in the arena. State that the function only reads is packed once, and lies
  /// elsewhere.
  static bool isPackedByEveryRun(Operation &op, const StepSignature &signature) {
    assert(op.getNumOperands() > kWeightOperand && "only an operation with a weight has a packing");
    Value weight = behindViews(op.getOperand(kWeightOperand));
    auto argument = dyn_cast<BlockArgument>(weight);
    return !argument || !isState(roleOf(weight)) || signature.resultOf(argument.getArgNumber()).has_value();
  }

  static void lowerPeak(func::FuncOp function, const TargetModel &target) {
    Block &body = function.getBody().front();
    SmallVector<Operation *> old;
    llvm::DenseMap<Operation *, int64_t> scratch;
    StepSignature signature(function);
    for (Operation &op : body.without_terminator()) {
      old.push_back(&op);
      KernelPlan plan = target.kernelPlan(&op);
      scratch[&op] = plan.workspaceBytes + (plan.packing && isPackedByEveryRun(op, signature) ? plan.packedBytes() : 0);
    }
    auto scratchOf = [&](Operation *op) { return scratch.lookup(op); };
    auto aliasing = [&](Operation *op) { return target.aliasing(op); };
    MemorySchedule schedule(body, {scratchOf, aliasing});
    if (!schedule.improve())
      return;
    size_t before = target.arenaBytes(function, scratchOf, SIZE_MAX);
    schedule.apply();
    if (target.arenaBytes(function, scratchOf, before - 1) < before)
      return;
    for (Operation *op : old)
      op->moveBefore(body.getTerminator());
  }
};

} // namespace

} // namespace mpc
