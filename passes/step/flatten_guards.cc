// Turns guarded updates into updates with a predicate operand.
//
//   %new:2 = mpc.guarded_update %finite else(%w, %v) {
//     %u = mpc.unscale %g, %scale : ...
//     %w2, %v2 = mpc.momentum %w, %v, %u, %rate : ...
//     mpc.yield %w2, %v2 : ...
//   } : ...
// becomes
//   %u = mpc.unscale %g, %scale : ...
//   %w2, %v2 = mpc.momentum %w, %v, %u, %rate, %finite : ...
//
// A short sweep: a guard is one operation of the block, and nothing is matched.
#include "compiler/dialect/dialect.h"
#include "passes/function_body.h"
#include "passes/passes.h"
#include "passes/step/step_flow.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_FLATTENGUARDSPASS
#include "passes/passes.h.inc"

namespace {

class FlattenGuardsPass : public impl::FlattenGuardsPassBase<FlattenGuardsPass> {
public:
  using FlattenGuardsPassBase::FlattenGuardsPassBase;

  void runOnOperation() override {
    Block *body = firstBlock(getOperation());
    if (!body)
      return;
    for (auto guard : llvm::make_early_inc_range(body->getOps<GuardedUpdateOp>()))
      flatten(guard);
  }

private:
  // The value that `updated` equals where the condition is false. It is the state operand at the head of a chain of
  // predicated updates. Null: `updated` is not the result of such an update.
  static Value heldState(Value updated, const llvm::DenseSet<Operation *> &predicated) {
    Value held = updated;
    while (predicated.contains(held.getDefiningOp()))
      held = held.getDefiningOp()->getOperand(cast<OpResult>(held).getResultNumber());
    return held == updated ? Value() : held;
  }

  static void flatten(GuardedUpdateOp guard) {
    OpBuilder builder(guard);
    Block &body = guard.getBody().front();
    auto yield = cast<YieldOp>(body.getTerminator());
    llvm::DenseSet<Operation *> predicated;
    for (Operation &op : llvm::make_early_inc_range(body.without_terminator())) {
      op.moveBefore(guard);
      if (!op.hasTrait<StateUpdate>() || hasPredicate(&op))
        continue;
      op.insertOperands(op.getNumOperands(), guard.getCondition());
      predicated.insert(&op);
    }
    for (auto [result, updated, old] : llvm::zip_equal(guard.getResults(), yield.getValues(), guard.getOld())) {
      Value chosen = updated;
      if (updated != old && heldState(updated, predicated) != old)
        chosen = SelectOp::create(builder, guard.getLoc(), result.getType(), guard.getCondition(), updated, old);
      result.replaceAllUsesWith(chosen);
    }
    guard.erase();
  }
};

} // namespace

} // namespace mpc
