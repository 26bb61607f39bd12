// Puts optimizers that agree side by side, so that a device runs them as one kernel.
//
//   %a2, %va2 = mpc.momentum %a, %va, %da, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, ...) -> ...
//   %b2, %vb2 = mpc.momentum %b, %vb, %db, %rate : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, ...) -> ...
//   %c2, %vc2 = mpc.momentum %c, %vc, %dc, %rate : (tensor<8xf32>, tensor<8xf32>, tensor<8xf16>, ...) -> ...
// becomes
//   %a2, %va2 = mpc.momentum %a, %va, %da, %rate : ...
//   %c2, %vc2 = mpc.momentum %c, %vc, %dc, %rate : ...
//   %b2, %vb2 = mpc.momentum %b, %vb, %db, %rate : ...
#include "compiler/dialect/dialect.h"
#include "passes/passes.h"
#include "passes/step/update_agreement.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_GROUPUPDATESPASS
#include "passes/passes.h.inc"

namespace {

/// Updates that follow each other.
using Run = SmallVector<OptimizerOpInterface>;

class GroupUpdatesPass : public impl::GroupUpdatesPassBase<GroupUpdatesPass> {
public:
  using GroupUpdatesPassBase::GroupUpdatesPassBase;

  void runOnOperation() override {
    if (getOperation().isExternal())
      return;
    for (const Run &updates : findRuns(getOperation().getBody().front()))
      if (areIndependent(updates))
        group(updates);
  }

private:
  static SmallVector<Run> findRuns(Block &body) {
    SmallVector<Run> runs(1);
    for (Operation &op : body) {
      if (auto update = dyn_cast<OptimizerOpInterface>(op))
        runs.back().push_back(update);
      else if (!runs.back().empty())
        runs.emplace_back();
    }
    return runs;
  }

  // Whether no update reads what another one writes, before or after. Of two that write one state, the first is the
  // writer.
  static bool areIndependent(const Run &updates) {
    llvm::DenseMap<Value, Operation *> writers;
    for (Operation *update : updates)
      for (OpResult result : update->getResults()) {
        writers[result] = update;
        if (!isLowCopy(result))
          writers.try_emplace(update->getOperand(result.getResultNumber()), update);
      }
    return llvm::all_of(updates, [&](Operation *update) {
      return llvm::all_of(update->getOperands(), [&](Value operand) {
        Operation *writer = writers.lookup(operand);
        return !writer || writer == update;
      });
    });
  }

  static void group(const Run &updates) {
    SmallVector<Run> groups;
    for (OptimizerOpInterface update : updates) {
      auto *known = llvm::find_if(groups, [&](const Run &group) { return mayShareKernel(group.front(), update); });
      if (known == groups.end())
        known = &groups.emplace_back();
      known->push_back(update);
    }
    if (groups.size() < 2)
      return;
    Operation *end = updates.back()->getNextNode();
    for (const Run &group : groups)
      for (Operation *update : group)
        update->moveBefore(end);
  }
};

} // namespace

} // namespace mpc
