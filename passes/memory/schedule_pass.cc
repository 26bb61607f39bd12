// Applies the order that MemorySchedule finds.
#include "compiler/dialect/dialect.h"
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
    MemorySchedule Schedule(getOperation().getBody().front(), {});
    if (Schedule.improve())
      Schedule.apply();
  }
};

} // namespace

} // namespace mpc
