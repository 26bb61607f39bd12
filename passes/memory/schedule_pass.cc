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
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/target_model.h"
#include "passes/memory/memory_schedule.h"
#include "passes/passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/passes.h.inc"

namespace {

class SchedulePass : public impl::SchedulePassBase<SchedulePass> {
public:
  using SchedulePassBase::SchedulePassBase;

  void runOnOperation() override {
    llvm::SetVector<func::FuncOp> CalleesFirst;
    for (auto Function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<func::FuncOp> CallersFirst = withCalled(Function);
      CalleesFirst.insert(CallersFirst.rbegin(), CallersFirst.rend());
    }
    for (func::FuncOp Function : CalleesFirst)
      if (!Function.isExternal() && failed(schedule(Function)))
        signalPassFailure();
  }

private:
  static LogicalResult schedule(func::FuncOp Function) {
    if (!Function.getBody().hasOneBlock())
      return Function.emitError() << "mpc-schedule orders one block of operations, got "
                                  << Function.getBody().getBlocks().size();
    FailureOr<std::unique_ptr<TargetModel>> Target = targetModelOf(Function);
    if (failed(Target))
      return failure();
    lowerPeak(Function, **Target);
    return success();
  }

  static void lowerPeak(func::FuncOp Function, const TargetModel &Target) {
    Block &Body = Function.getBody().front();
    SmallVector<Operation *> Old;
    llvm::DenseMap<Operation *, int64_t> Workspaces;
    for (Operation &Op : Body.without_terminator()) {
      Old.push_back(&Op);
      Workspaces[&Op] = Target.workspaceBytes(&Op);
    }
    auto WorkspaceOf = [&](Operation *Op) { return Workspaces.lookup(Op); };
    auto MayAlias = [&](Operation *Op, unsigned Result, unsigned Operand) {
      return Target.mayAlias(Op, Result, Operand);
    };
    MemorySchedule Schedule(Body, {WorkspaceOf, MayAlias});
    if (!Schedule.improve())
      return;
    size_t Before = Target.arenaBytes(Function, WorkspaceOf, SIZE_MAX);
    Schedule.apply();
    if (Target.arenaBytes(Function, WorkspaceOf, Before - 1) < Before)
      return;
    for (Operation *Op : Old)
      Op->moveBefore(Body.getTerminator());
  }
};

} // namespace

} // namespace mpc
