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
#include "compiler/dialect/dialect.h"
#include "passes/function_body.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_FLATTENGUARDSPASS
#include "passes/passes.h.inc"

namespace {

class FlattenGuardsPass : public impl::FlattenGuardsPassBase<FlattenGuardsPass> {
public:
  using FlattenGuardsPassBase::FlattenGuardsPassBase;

  void runOnOperation() override {
    Block *Body = firstBlock(getOperation());
    if (!Body)
      return;
    for (auto Guard : llvm::make_early_inc_range(Body->getOps<GuardedUpdateOp>()))
      flatten(Guard);
  }

private:
  // The value that `New` equals where the condition is false. It is the state operand at the head of a chain of
  // predicated updates. Null: `New` is not the result of such an update.
  static Value heldState(Value New, const llvm::DenseSet<Operation *> &Predicated) {
    Value Held = New;
    while (Predicated.contains(Held.getDefiningOp()))
      Held = Held.getDefiningOp()->getOperand(cast<OpResult>(Held).getResultNumber());
    return Held == New ? Value() : Held;
  }

  static bool hasPredicate(Operation *Op) {
    return Op->getNumOperands() > 0 && getElementTypeOrSelf(Op->getOperands().back().getType()).isInteger(1);
  }

  static void flatten(GuardedUpdateOp Guard) {
    OpBuilder Builder(Guard);
    Block &Body = Guard.getBody().front();
    auto Yield = cast<YieldOp>(Body.getTerminator());
    llvm::DenseSet<Operation *> Predicated;
    for (Operation &Op : llvm::make_early_inc_range(Body.without_terminator())) {
      Op.moveBefore(Guard);
      if (!Op.hasTrait<StateUpdate>() || hasPredicate(&Op))
        continue;
      Op.insertOperands(Op.getNumOperands(), Guard.getCondition());
      Predicated.insert(&Op);
    }
    for (auto [Result, New, Old] : llvm::zip_equal(Guard.getResults(), Yield.getValues(), Guard.getOld())) {
      Value Chosen = New;
      if (New != Old && heldState(New, Predicated) != Old)
        Chosen = SelectOp::create(Builder, Guard.getLoc(), Result.getType(), Guard.getCondition(), New, Old);
      Result.replaceAllUsesWith(Chosen);
    }
    Guard.erase();
  }
};

} // namespace

} // namespace mpc
