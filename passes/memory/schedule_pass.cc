// Applies the order that MemorySchedule finds, where the plan of the target gets smaller by it.
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
    if (getOperation().isExternal())
      return;
    if (!getOperation().getBody().hasOneBlock()) {
      getOperation().emitError() << "mpc-schedule orders one block of operations, got "
                                 << getOperation().getBody().getBlocks().size();
      return signalPassFailure();
    }
    FailureOr<std::unique_ptr<TargetModel>> Target = targetModelOf(getOperation());
    if (failed(Target))
      return signalPassFailure();
    lowerPeak(**Target);
  }

private:
  void lowerPeak(const TargetModel &Target) {
    Block &Body = getOperation().getBody().front();
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
    size_t Before = Target.arenaBytes(getOperation(), WorkspaceOf, SIZE_MAX);
    Schedule.apply();
    if (Target.arenaBytes(getOperation(), WorkspaceOf, Before - 1) < Before)
      return;
    for (Operation *Op : Old)
      Op->moveBefore(Body.getTerminator());
  }
};

} // namespace

} // namespace mpc
