// Keeps state in a skipped step: guarded updates, and the choice of state that no update computes.
#include "compiler/dialect/step_signature.h"
#include "passes/step/step_wrap.h"

using namespace mlir;

namespace mpc {

static Operation *later(Operation *a, Operation *b) { return !a || (b && a->isBeforeInBlock(b)) ? b : a; }

void StepWrap::collectOrigins() {
  for (Value result : terminator->getOperands()) {
    Origin from;
    from.requests = flow.behind(result, from.followsUpdate);
    origins.push_back(from);
  }
}

// Under accumulation there is one backup of a statistic, so all its updates hold together.
RequestSet StepWrap::deciding(Operation *update) const {
  RequestSet set = flow.deciding(update);
  if (!accumulates() || !isa<BatchNormRunningUpdateOp>(update))
    return set;
  Value state = stateBefore(update->getResult(0));
  for (auto other : update->getBlock()->getOps<BatchNormRunningUpdateOp>())
    if (stateBefore(other->getResult(0)) == state)
      set |= flow.deciding(other);
  return set;
}

UpdateKey StepWrap::keyOf(RequestSet set, bool followsUpdate) const {
  unsigned count = flow.getRequests().size();
  UpdateKey key;
  key.requests = RequestSet(count);
  key.last = accumulates() && followsUpdate;
  if (!holds())
    return key;
  set.resize(count);
  if (count == 1)
    set.set(0);
  key.requests = set;
  key.any = set.none();
  return key;
}

Value reduceFlags(OpBuilder &builder, ArrayRef<Value> given, bool any, std::optional<Location> loc) {
  if (given.size() == 1)
    return given.front();
  Operation *latest = nullptr;
  for (Value flag : given)
    latest = later(latest, flag.getDefiningOp());
  OpBuilder::InsertionGuard restore(builder);
  builder.setInsertionPointAfter(latest);
  Type flag = RankedTensorType::get({}, builder.getI1Type());
  Location place = loc.value_or(latest->getLoc());
  if (any)
    return AnyOfOp::create(builder, place, flag, given);
  return AllOfOp::create(builder, place, flag, given);
}

Value StepWrap::predicateOf(const UpdateKey &key) {
  for (auto &[known, predicate] : predicates)
    if (known == key)
      return predicate;
  SmallVector<Value> chosen;
  for (auto [request, flag] : llvm::enumerate(flags))
    if (holds() && (key.any || key.requests.test(request)))
      chosen.push_back(flag);
  if (key.any && !chosen.empty())
    chosen = {reduceFlags(builder, chosen, /*any=*/true, loc)};
  if (key.last)
    chosen.insert(chosen.begin(), isLast);
  Value predicate = chosen.empty() ? Value() : reduceFlags(builder, chosen, /*any=*/false, loc);
  predicates.push_back({key, predicate});
  return predicate;
}

void StepWrap::guard(const UpdateGroup &region) {
  Value predicate = predicateOf(region.key);
  SmallVector<Value> updated, old;
  SmallVector<Type> types;
  for (Operation *op : region.updates)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !region.updates.contains(user); })) {
        Value before = result;
        while (region.updates.contains(before.getDefiningOp()))
          before = before.getDefiningOp()->getOperand(cast<OpResult>(before).getResultNumber());
        updated.push_back(result);
        old.push_back(fallback(before, region.key));
        types.push_back(result.getType());
      }

  Operation *latest = latestInput(region, predicate);
  for (Value held : old)
    latest = later(latest, held.getDefiningOp());
  builder.setInsertionPointAfter(latest);
  auto guard = GuardedUpdateOp::create(builder, loc, types, predicate, old);
  moveFollowing(region, guard);
  Block *body = builder.createBlock(&guard.getBody());
  llvm::DenseMap<Value, Value> unscaledInside;
  for (Operation *op : region.updates) {
    op->moveBefore(body, body->end());
    for (OpOperand &use : op->getOpOperands())
      for (auto [request, asked] : llvm::enumerate(flow.getRequests())) {
        if (!llvm::is_contained(asked.gradients, use.get()))
          continue;
        Value &unscaled = unscaledInside[use.get()];
        if (!unscaled) {
          builder.setInsertionPoint(op);
          unscaled = unscale(request, use.get());
        }
        use.set(unscaled);
        break;
      }
  }
  for (auto [result, value] : llvm::zip_equal(guard.getResults(), updated))
    value.replaceUsesWithIf(result, [&](OpOperand &use) { return use.getOwner()->getBlock() != body; });
  builder.setInsertionPointToEnd(body);
  YieldOp::create(builder, loc, updated);
}

// Moves operations that read the updates, directly or not, behind the region.
void StepWrap::moveFollowing(const UpdateGroup &region, Operation *guard) {
  llvm::SetVector<Operation *> follows;
  for (Operation &op : llvm::make_range(guard->getBlock()->begin(), guard->getIterator())) {
    if (region.updates.contains(&op))
      continue;
    bool reads = llvm::any_of(op.getOperands(), [&](Value v) {
      Operation *definition = v.getDefiningOp();
      return definition && (region.updates.contains(definition) || follows.contains(definition));
    });
    if (reads)
      follows.insert(&op);
  }
  Operation *last = guard;
  for (Operation *op : follows) {
    op->moveAfter(last);
    last = op;
  }
}

// The last operation that must precede the region.
Operation *StepWrap::latestInput(const UpdateGroup &region, Value predicate) {
  Operation *latest = predicate.getDefiningOp();
  for (Operation *op : region.updates)
    for (Value operand : op->getOperands()) {
      Operation *definition = operand.getDefiningOp();
      if (definition && !region.updates.contains(definition))
        latest = later(latest, definition);
    }
  return latest;
}

// State that anything but a guarded update computes.
void StepWrap::selectOtherState() {
  builder.setInsertionPoint(terminator);
  StepSignature signature(function);
  for (OpOperand &use : terminator->getOpOperands()) {
    std::optional<unsigned> argument = signature.argumentOf(use.getOperandNumber());
    Value old = argument ? function.getArgument(*argument) : Value();
    Operation *definition = use.get().getDefiningOp();
    if (!old || old == use.get() || !definition || isa<GuardedUpdateOp>(definition) ||
        old.getType() != use.get().getType())
      continue;
    const Origin &from = origins[use.getOperandNumber()];
    UpdateKey key = keyOf(from.requests, from.followsUpdate);
    Value predicate = predicateOf(key);
    if (!predicate)
      continue;
    Value held = fallback(old, key);
    builder.setInsertionPoint(terminator);
    use.set(SelectOp::create(builder, loc, old.getType(), predicate, use.get(), held));
  }
}

} // namespace mpc
