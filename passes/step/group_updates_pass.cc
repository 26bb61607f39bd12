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
    for (const Run &Updates : findRuns(getOperation().getBody().front()))
      if (areIndependent(Updates))
        group(Updates);
  }

private:
  static SmallVector<Run> findRuns(Block &Body) {
    SmallVector<Run> Runs(1);
    for (Operation &Op : Body) {
      if (auto Update = dyn_cast<OptimizerOpInterface>(Op))
        Runs.back().push_back(Update);
      else if (!Runs.back().empty())
        Runs.emplace_back();
    }
    return Runs;
  }

  // Whether no update reads what another one writes, before or after. Of two that write one state, the first is the
  // writer.
  static bool areIndependent(const Run &Updates) {
    llvm::DenseMap<Value, Operation *> Writers;
    for (Operation *Update : Updates)
      for (OpResult Result : Update->getResults()) {
        Writers[Result] = Update;
        if (!isShadow(Result))
          Writers.try_emplace(Update->getOperand(Result.getResultNumber()), Update);
      }
    return llvm::all_of(Updates, [&](Operation *Update) {
      return llvm::all_of(Update->getOperands(), [&](Value Operand) {
        Operation *Writer = Writers.lookup(Operand);
        return !Writer || Writer == Update;
      });
    });
  }

  static void group(const Run &Updates) {
    SmallVector<Run> Groups;
    for (OptimizerOpInterface Update : Updates) {
      auto *Known = llvm::find_if(Groups, [&](const Run &Group) { return mayShareKernel(Group.front(), Update); });
      if (Known == Groups.end())
        Known = &Groups.emplace_back();
      Known->push_back(Update);
    }
    if (Groups.size() < 2)
      return;
    Operation *End = Updates.back()->getNextNode();
    for (const Run &Group : Groups)
      for (Operation *Update : Group)
        Update->moveBefore(End);
  }
};

} // namespace

} // namespace mpc
