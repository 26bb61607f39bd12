// Keeps state in a skipped step: guarded updates, and the choice of state that no update computes.
#include "compiler/dialect/step_signature.h"
#include "passes/step/step_wrap.h"

using namespace mlir;

namespace mpc {

static Operation *later(Operation *A, Operation *B) { return !A || (B && A->isBeforeInBlock(B)) ? B : A; }

void StepWrap::collectOrigins() {
  for (Value Result : Return->getOperands()) {
    Origin From;
    From.Requests = Flow.behind(Result, From.FollowsUpdate);
    Origins.push_back(From);
  }
}

// Under accumulation there is one backup of a statistic, so all its updates hold together.
RequestSet StepWrap::deciding(Operation *Update) const {
  RequestSet Set = Flow.deciding(Update);
  if (!accumulates() || !isa<BatchNormRunningUpdateOp>(Update))
    return Set;
  Value State = stateBefore(Update->getResult(0));
  for (auto Other : Update->getBlock()->getOps<BatchNormRunningUpdateOp>())
    if (stateBefore(Other->getResult(0)) == State)
      Set |= Flow.deciding(Other);
  return Set;
}

UpdateKey StepWrap::keyOf(RequestSet Set, bool FollowsUpdate) const {
  unsigned Count = Flow.requests().size();
  UpdateKey Key;
  Key.Requests = RequestSet(Count);
  Key.Last = accumulates() && FollowsUpdate;
  if (!holds())
    return Key;
  Set.resize(Count);
  if (Count == 1)
    Set.set(0);
  Key.Requests = Set;
  Key.Any = Set.none();
  return Key;
}

Value reduceFlags(OpBuilder &Builder, ArrayRef<Value> Given, bool Any, std::optional<Location> Loc) {
  if (Given.size() == 1)
    return Given.front();
  Operation *Latest = nullptr;
  for (Value Flag : Given)
    Latest = later(Latest, Flag.getDefiningOp());
  OpBuilder::InsertionGuard Restore(Builder);
  Builder.setInsertionPointAfter(Latest);
  Type Flag = RankedTensorType::get({}, Builder.getI1Type());
  Location Place = Loc.value_or(Latest->getLoc());
  if (Any)
    return AnyOfOp::create(Builder, Place, Flag, Given);
  return AllOfOp::create(Builder, Place, Flag, Given);
}

Value StepWrap::predicate(const UpdateKey &Key) {
  for (auto &[Known, Predicate] : Predicates)
    if (Known == Key)
      return Predicate;
  SmallVector<Value> Chosen;
  for (auto [Request, Flag] : llvm::enumerate(Flags))
    if (holds() && (Key.Any || Key.Requests.test(Request)))
      Chosen.push_back(Flag);
  if (Key.Any && !Chosen.empty())
    Chosen = {reduceFlags(Builder, Chosen, /*Any=*/true, Loc)};
  if (Key.Last)
    Chosen.insert(Chosen.begin(), IsLast);
  Value Predicate = Chosen.empty() ? Value() : reduceFlags(Builder, Chosen, /*Any=*/false, Loc);
  Predicates.push_back({Key, Predicate});
  return Predicate;
}

void StepWrap::guard(const UpdateRegion &Region) {
  Value Predicate = predicate(Region.Key);
  SmallVector<Value> New, Old;
  SmallVector<Type> Types;
  for (Operation *Op : Region.Updates)
    for (Value Result : Op->getResults())
      if (llvm::any_of(Result.getUsers(), [&](Operation *User) { return !Region.Updates.contains(User); })) {
        Value Before = Result;
        while (Region.Updates.contains(Before.getDefiningOp()))
          Before = Before.getDefiningOp()->getOperand(cast<OpResult>(Before).getResultNumber());
        New.push_back(Result);
        Old.push_back(fallback(Before, Region.Key));
        Types.push_back(Result.getType());
      }

  Operation *Latest = latestInput(Region, Predicate);
  for (Value Held : Old)
    Latest = later(Latest, Held.getDefiningOp());
  Builder.setInsertionPointAfter(Latest);
  auto Guard = GuardedUpdateOp::create(Builder, Loc, Types, Predicate, Old);
  moveFollowing(Region, Guard);
  Block *Body = Builder.createBlock(&Guard.getBody());
  llvm::DenseMap<Value, Value> UnscaledInside;
  for (Operation *Op : Region.Updates) {
    Op->moveBefore(Body, Body->end());
    for (OpOperand &Use : Op->getOpOperands())
      for (auto [Request, Asked] : llvm::enumerate(Flow.requests())) {
        if (!llvm::is_contained(Asked.Gradients, Use.get()))
          continue;
        Value &Unscaled = UnscaledInside[Use.get()];
        if (!Unscaled) {
          Builder.setInsertionPoint(Op);
          Unscaled = unscale(Request, Use.get());
        }
        Use.set(Unscaled);
        break;
      }
  }
  for (auto [Result, Value] : llvm::zip_equal(Guard.getResults(), New))
    Value.replaceUsesWithIf(Result, [&](OpOperand &Use) { return Use.getOwner()->getBlock() != Body; });
  Builder.setInsertionPointToEnd(Body);
  YieldOp::create(Builder, Loc, New);
}

// Moves operations that read the updates, directly or not, behind the region.
void StepWrap::moveFollowing(const UpdateRegion &Region, Operation *Guard) {
  llvm::SetVector<Operation *> Follows;
  for (Operation &Op : llvm::make_range(Guard->getBlock()->begin(), Guard->getIterator())) {
    if (Region.Updates.contains(&Op))
      continue;
    bool Reads = llvm::any_of(Op.getOperands(), [&](Value V) {
      Operation *Definition = V.getDefiningOp();
      return Definition && (Region.Updates.contains(Definition) || Follows.contains(Definition));
    });
    if (Reads)
      Follows.insert(&Op);
  }
  Operation *Last = Guard;
  for (Operation *Op : Follows) {
    Op->moveAfter(Last);
    Last = Op;
  }
}

// The last operation that must precede the region.
Operation *StepWrap::latestInput(const UpdateRegion &Region, Value Predicate) {
  Operation *Latest = Predicate.getDefiningOp();
  for (Operation *Op : Region.Updates)
    for (Value Operand : Op->getOperands()) {
      Operation *Definition = Operand.getDefiningOp();
      if (Definition && !Region.Updates.contains(Definition))
        Latest = later(Latest, Definition);
    }
  return Latest;
}

// State that anything but a guarded update computes.
void StepWrap::selectOtherState() {
  Builder.setInsertionPoint(Return);
  StepSignature Signature(Function);
  for (OpOperand &Use : Return->getOpOperands()) {
    std::optional<unsigned> Argument = Signature.argumentOf(Use.getOperandNumber());
    Value Old = Argument ? Function.getArgument(*Argument) : Value();
    Operation *Definition = Use.get().getDefiningOp();
    if (!Old || Old == Use.get() || !Definition || isa<GuardedUpdateOp>(Definition) ||
        Old.getType() != Use.get().getType())
      continue;
    const Origin &From = Origins[Use.getOperandNumber()];
    UpdateKey Key = keyOf(From.Requests, From.FollowsUpdate);
    Value Predicate = predicate(Key);
    if (!Predicate)
      continue;
    Value Held = fallback(Old, Key);
    Builder.setInsertionPoint(Return);
    Use.set(SelectOp::create(Builder, Loc, Old.getType(), Predicate, Use.get(), Held));
  }
}

} // namespace mpc
