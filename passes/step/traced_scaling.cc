#include "passes/step/traced_scaling.h"

#include "compiler/dialect/dialect.h"
#include "passes/step/step_wrap.h"
using namespace mlir;

namespace mpc {

namespace {

class TracedGuard {
public:
  TracedGuard(func::FuncOp Function, const StepFlow &Flow)
      : Flow(Flow), Body(Function.getBody().front()), Builder(Function.getContext()) {}

  void run() {
    collectFlags();
    for (Operation &Op : llvm::make_early_inc_range(Body))
      if (Op.hasTrait<StateUpdate>() && !hasPredicate(Op) && (isa<BatchNormRunningUpdateOp>(Op) || isGenerator(Op)))
        guard(Op);
  }

private:
  static bool isFlag(Value V) { return getElementTypeOrSelf(V.getType()).isInteger(1); }

  static bool hasPredicate(Operation &Op) { return isFlag(Op.getOperands().back()); }

  // The counter of the random generator.
  bool isGenerator(Operation &Op) const { return isa<IncrementOp>(Op) && Flow.roleOf(Op.getOperand(0)) == Role::kRng; }

  // Whether a state update waits for the flag.
  static bool decides(Value Flag) {
    return llvm::any_of(Flag.getUsers(), [&](Operation *User) {
      if (has<Property::JoinsFlags>(User))
        return decides(User->getResult(0));
      return isa<GuardedUpdateOp>(User) || (User->hasTrait<StateUpdate>() && User->getOperands().back() == Flag);
    });
  }

  static Value unscaledLoss(Value Loss) {
    auto Scaled = Loss.getDefiningOp<ScaleLossOp>();
    return Scaled ? Scaled.getLoss() : Loss;
  }

  void collectFlags() {
    Flags.resize(Flow.requests().size());
    for (auto Check : Body.getOps<AllFiniteOp>()) {
      if (!decides(Check.getFinite()))
        continue;
      RequestSet Checked(Flags.size());
      for (Value Gradient : Check.getGradients())
        Checked |= Flow.gradientsInto(Gradient);
      for (auto [Index, Request] : llvm::enumerate(Flow.requests()))
        if (Check.getLoss() == unscaledLoss(Request.Loss))
          Checked.set(Index);
      for (unsigned Request : Checked.set_bits())
        Flags[Request].push_back(Check.getFinite());
    }
  }

  // Null: always.
  Value predicate(Operation &Op) {
    RequestSet Set = Flow.deciding(&Op);
    SmallVector<Value> Chosen;
    if (Set.any()) {
      for (unsigned Request : Set.set_bits())
        llvm::append_range(Chosen, Flags[Request]);
      return Chosen.empty() ? Value() : reduceFlags(Builder, Chosen, /*Any=*/false);
    }
    for (SmallVectorImpl<Value> &OfRequest : Flags) {
      if (OfRequest.empty())
        return {};
      Chosen.push_back(reduceFlags(Builder, OfRequest, /*Any=*/false));
    }
    return Chosen.empty() ? Value() : reduceFlags(Builder, Chosen, /*Any=*/true);
  }

  void guard(Operation &Op) {
    Value Predicate = predicate(Op);
    if (!Predicate)
      return;
    if (!moveBehind(Op, Predicate.getDefiningOp())) {
      Op.emitRemark() << "the step reads this state before its losses are checked: it moves in skipped steps too";
      return;
    }
    Op.insertOperands(Op.getNumOperands(), Predicate);
  }

  // Moves an operation, and what follows from it, behind `Anchor`; false where the anchor itself follows from it.
  static bool moveBehind(Operation &Op, Operation *Anchor) {
    if (Anchor->isBeforeInBlock(&Op))
      return true;
    llvm::DenseSet<Operation *> Follows{&Op};
    SmallVector<Operation *> Moved{&Op};
    auto Reads = [&](Operation &Other) {
      return llvm::any_of(Other.getOperands(), [&](Value V) { return Follows.contains(V.getDefiningOp()); });
    };
    for (Operation &Other : llvm::make_range(std::next(Op.getIterator()), Anchor->getIterator()))
      if (Reads(Other)) {
        Follows.insert(&Other);
        Moved.push_back(&Other);
      }
    if (Reads(*Anchor))
      return false;
    Operation *Last = Anchor;
    for (Operation *Moving : Moved) {
      Moving->moveAfter(Last);
      Last = Moving;
    }
    return true;
  }

  const StepFlow &Flow;
  Block &Body;
  OpBuilder Builder;
  SmallVector<SmallVector<Value>> Flags; ///< flags of each request; none where it skips nothing
};

} // namespace

bool hasTracedScaling(func::FuncOp Function) { return !Function.getBody().front().getOps<AllFiniteOp>().empty(); }

void guardTracedScaling(func::FuncOp Function, const StepFlow &Flow) { TracedGuard(Function, Flow).run(); }

} // namespace mpc
