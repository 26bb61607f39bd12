#include "passes/step/traced_scaling.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "passes/step/checked_norms.h"
#include "passes/step/loss_weight.h"

using namespace mlir;

namespace mpc {

namespace {

class TracedGuard {
public:
  TracedGuard(func::FuncOp function, const StepFlow &flow)
      : flow(flow), body(function.getBody().front()), builder(function.getContext()), edit(function, flow) {}

  void run() {
    collectFlags();
    checkNorms();
    for (Operation &op : llvm::make_early_inc_range(body))
      if (op.hasTrait<StateUpdate>() && !hasPredicate(&op) &&
          (isa<BatchNormRunningUpdateOp>(op) || flow.isGenerator(&op)))
        guard(op);
  }

private:
  // Whether a state update waits for the flag.
  static bool decides(Value flag) {
    return llvm::any_of(flag.getUsers(), [&](Operation *user) {
      if (has<Property::JoinsFlags>(user))
        return decides(user->getResult(0));
      return isa<GuardedUpdateOp>(user) || (user->hasTrait<StateUpdate>() && user->getOperands().back() == flag);
    });
  }

  static Value unscaledLoss(Value loss) {
    auto scaled = loss.getDefiningOp<ScaleLossOp>();
    return scaled ? scaled.getLoss() : loss;
  }

  void collectFlags() {
    flags.resize(flow.getRequests().size());
    for (auto check : body.getOps<AllFiniteOp>()) {
      if (!decides(check.getFinite()))
        continue;
      RequestSet checked(flags.size());
      for (Value gradient : check.getGradients())
        checked |= flow.gradientsInto(gradient);
      for (auto [index, request] : llvm::enumerate(flow.getRequests()))
        if (check.getLoss() == unscaledLoss(request.loss))
          checked.set(index);
      for (unsigned request : checked.set_bits())
        flags[request].push_back(check.getFinite());
      checks.push_back({check, checked});
    }
  }

  // A norm that is not finite skips the step as a gradient does.
  void checkNorms() {
    CheckedNorms norms(edit, /*takesMeans=*/false);
    for (auto &[check, checked] : checks)
      for (unsigned request : checked.set_bits())
        norms.addTo(check, request);
  }

  // Null: always.
  Value predicateOf(Operation &op) {
    RequestSet set = flow.deciding(&op);
    SmallVector<Value> chosen;
    if (set.any()) {
      for (unsigned request : set.set_bits())
        llvm::append_range(chosen, flags[request]);
      return chosen.empty() ? Value() : reduceFlags(builder, chosen, /*any=*/false);
    }
    for (SmallVectorImpl<Value> &ofRequest : flags) {
      if (ofRequest.empty())
        return {};
      chosen.push_back(reduceFlags(builder, ofRequest, /*any=*/false));
    }
    return chosen.empty() ? Value() : reduceFlags(builder, chosen, /*any=*/true);
  }

  void guard(Operation &op) {
    Value predicate = predicateOf(op);
    if (!predicate)
      return;
    if (!moveBehind(op, predicate.getDefiningOp())) {
      op.emitRemark() << "the step reads this state before its losses are checked: it moves in skipped steps too";
      return;
    }
    op.insertOperands(op.getNumOperands(), predicate);
  }

  // Moves an operation, and what follows from it, behind `anchor`; false where the anchor itself follows from it.
  static bool moveBehind(Operation &op, Operation *anchor) {
    if (anchor->isBeforeInBlock(&op))
      return true;
    llvm::DenseSet<Operation *> follows{&op};
    SmallVector<Operation *> moved{&op};
    auto reads = [&](Operation &other) {
      return llvm::any_of(other.getOperands(), [&](Value v) { return follows.contains(v.getDefiningOp()); });
    };
    for (Operation &other : llvm::make_range(std::next(op.getIterator()), anchor->getIterator()))
      if (reads(other)) {
        follows.insert(&other);
        moved.push_back(&other);
      }
    if (reads(*anchor))
      return false;
    Operation *last = anchor;
    for (Operation *moving : moved) {
      moving->moveAfter(last);
      last = moving;
    }
    return true;
  }

  const StepFlow &flow;
  Block &body;
  OpBuilder builder;
  StepEdit edit;
  SmallVector<SmallVector<Value>> flags;                  ///< flags of each request; none where it skips nothing
  SmallVector<std::pair<AllFiniteOp, RequestSet>> checks; ///< checks that updates wait for, and their requests
};

} // namespace

bool hasTracedScaling(func::FuncOp function) { return !function.getBody().front().getOps<AllFiniteOp>().empty(); }

void guardTracedScaling(func::FuncOp function, const StepFlow &flow) { TracedGuard(function, flow).run(); }

LogicalResult shareTracedScaling(func::FuncOp function, const ProcessMean &sharing) {
  StepFlow flow(function);
  StepEdit edit(function, flow);
  MicroSteps one(edit, /*count=*/1, sharing, /*isLast=*/true);
  OpBuilder &builder = edit.builder;
  for (auto [number, request] : llvm::enumerate(flow.getRequests())) {
    builder.setInsertionPointAfter(request.op);
    FailureOr<WeightedMean> weights = WeightedMean::of(number, edit, one);
    if (failed(weights))
      return failure();
    Operation *last = &*std::prev(builder.getInsertionPoint());
    for (Value gradient : request.gradients) {
      builder.setInsertionPointAfter(last);
      SmallVector<OpOperand *> readers;
      for (OpOperand &use : gradient.getUses())
        readers.push_back(&use);
      Location loc = request.op->getLoc();
      Value mean = sharing.mean(builder, loc, weights->weigh(builder, loc, gradient));
      mean = weights->normalize(builder, loc, mean);
      for (OpOperand *use : readers)
        use->set(mean);
    }
  }
  for (auto check : llvm::make_early_inc_range(function.getBody().front().getOps<AllFiniteOp>())) {
    builder.setInsertionPointAfter(check);
    SmallVector<OpOperand *> readers;
    for (Value found : check->getResults())
      for (OpOperand &use : found.getUses())
        readers.push_back(&use);
    ValueRange gradients = check.getGradients();
    auto norms = llvm::count_if(gradients, [](Value v) { return elementOf(v).isInteger(1); });
    FindingBesideNorms own(builder, check.getLoc(), check.getFirstBad(), gradients.size() - norms, norms > 0);
    Value ofAll = sharing.agree(builder, check.getLoc(), own.getOfGradients());
    Finding agreed = findingOf(builder, check.getLoc(), own.withNorms(builder, check.getLoc(), ofAll));
    for (OpOperand *use : readers)
      use->set(use->get() == check.getFinite() ? agreed.finite : agreed.firstBad);
  }
  return success();
}

} // namespace mpc
