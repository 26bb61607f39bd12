#include "passes/memory/memory_schedule.h"

#include "compiler/dialect/dialect.h"
#include "passes/fusion/block_groups.h"
#include "passes/memory/saved_values.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>

using namespace mlir;

namespace mpc {

/// How many moves are made, and how far from the peak's operation others are tried: what bounds the time it takes.
static constexpr unsigned MostMoves = 64;
static constexpr unsigned Window = 24;
/// Storage is padded to cache lines.
static constexpr int64_t Line = 64;

static StringRef argumentRole(Value V) {
  auto Argument = dyn_cast<BlockArgument>(V);
  auto Function = Argument ? dyn_cast<func::FuncOp>(Argument.getOwner()->getParentOp()) : func::FuncOp();
  auto Role = Function ? Function.getArgAttrOfType<StringAttr>(Argument.getArgNumber(), RoleAttrName) : StringAttr();
  return Role ? Role.getValue() : "";
}

unsigned MemorySchedule::storageOf(Value V) {
  Value Source = behindReshapes(V);
  auto [Entry, New] = Numbers.try_emplace(Source, Bytes.size());
  if (!New)
    return Entry->second;
  StringRef Role = argumentRole(Source);
  bool Input = isa<BlockArgument>(Source) && (Role.empty() || Role == "input");
  bool Elsewhere = (isa<BlockArgument>(Source) && !Input) || Source.getDefiningOp<ConstantOp>();
  Bytes.push_back(Elsewhere ? 0 : llvm::alignTo(bytesOf(Source), Line));
  IsInput.push_back(Input);
  IsResult.push_back(false);
  return Entry->second;
}

// Of an operation and, where it has a region that is not isolated, of those inside.
static llvm::SmallSetVector<Value, 8> valuesRead(Operation *Op) {
  llvm::SmallSetVector<Value, 8> Values;
  Op->walk([&](Operation *Nested) {
    for (Value Operand : Nested->getOperands())
      if (Operand.getParentBlock() == Op->getBlock())
        Values.insert(Operand);
  });
  return Values;
}

void MemorySchedule::addNode(Operation *Op, const MemoryModel &Model) {
  unsigned Number = Nodes.size();
  Node New;
  New.Op = Op;
  New.Pinned = Op->hasTrait<StateUpdate>();
  New.Workspace = Model.Workspace ? Model.Workspace(Op) : 0;
  llvm::SmallSetVector<unsigned, 8> Reads;
  llvm::SmallSetVector<unsigned, 8> Before;
  for (Value Operand : valuesRead(Op)) {
    Reads.insert(storageOf(Operand));
    if (Operation *Producer = behindReshapes(Operand).getDefiningOp())
      if (auto Known = NodeOf.find(Producer); Known != NodeOf.end())
        Before.insert(Known->second);
  }
  New.Reads.assign(Reads.begin(), Reads.end());
  New.Before.assign(Before.begin(), Before.end());
  for (OpResult Result : Op->getResults()) {
    unsigned Storage = storageOf(Result);
    // An update writes over the state that it reads.
    if (New.Pinned)
      Bytes[Storage] = 0;
    New.Writes.push_back(Storage);
    for (OpOperand &Operand : Op->getOpOperands())
      if (Model.MayAlias && Operand.get().getType() == Result.getType() && Bytes[storageOf(Operand.get())] > 0 &&
          Model.MayAlias(Op, Result.getResultNumber(), Operand.getOperandNumber()))
        New.Aliases.emplace_back(Storage, storageOf(Operand.get()));
  }
  for (unsigned Other : New.Before)
    Nodes[Other].After.push_back(Number);
  NodeOf[Op] = Number;
  Nodes.push_back(std::move(New));
}

MemorySchedule::MemorySchedule(Block &Body, const MemoryModel &Model) : Body(Body) {
  for (BlockArgument Argument : Body.getArguments())
    storageOf(Argument);
  for (Operation &Op : Body.without_terminator())
    if (!isa<ReshapeOp, ConstantOp>(Op))
      addNode(&Op, Model);
  for (Value Returned : Body.getTerminator()->getOperands())
    IsResult[storageOf(Returned)] = true;
  for (unsigned Number = 0; Number < Nodes.size(); ++Number) {
    Order.push_back(Number);
    Position.push_back(Number);
  }
  Current = measure(Order);
}

MemorySchedule::Profile MemorySchedule::measure(ArrayRef<unsigned> Order) const {
  std::vector<unsigned> LastRead(Bytes.size(), 0);
  for (unsigned At = 0; At < Order.size(); ++At) {
    for (unsigned Storage : Nodes[Order[At]].Reads)
      LastRead[Storage] = At;
    for (unsigned Storage : Nodes[Order[At]].Writes)
      LastRead[Storage] = std::max(LastRead[Storage], At);
  }
  Profile Result;
  Result.LiveBefore.resize(Order.size());
  int64_t Live = 0;
  for (unsigned Storage = 0; Storage < Bytes.size(); ++Storage)
    Live += IsInput[Storage] ? Bytes[Storage] : 0;
  for (unsigned At = 0; At < Order.size(); ++At) {
    const Node &Here = Nodes[Order[At]];
    Result.LiveBefore[At] = Live;
    SmallVector<unsigned, 4> Dying;
    for (unsigned Storage : Here.Reads)
      if (LastRead[Storage] == At && !IsResult[Storage] && Bytes[Storage] > 0)
        Dying.push_back(Storage);
    SmallVector<unsigned, 4> Taken, Placed;
    for (auto [Written, Read] : Here.Aliases)
      if (llvm::is_contained(Dying, Read) && !llvm::is_contained(Taken, Read) && !llvm::is_contained(Placed, Written)) {
        Taken.push_back(Read);
        Placed.push_back(Written);
      }
    int64_t Made = 0, Freed = 0;
    for (unsigned Storage : Here.Writes) {
      Made += llvm::is_contained(Placed, Storage) ? 0 : Bytes[Storage];
      Freed += LastRead[Storage] == At && !IsResult[Storage] ? Bytes[Storage] : 0;
    }
    for (unsigned Storage : Dying)
      Freed += llvm::is_contained(Taken, Storage) ? 0 : Bytes[Storage];
    int64_t Total = Live + Made + llvm::alignTo(Here.Workspace, Line);
    if (Total > Result.Peak) {
      Result.Peak = Total;
      Result.At = At;
    }
    Live += Made - Freed;
  }
  return Result;
}

std::pair<unsigned, unsigned> MemorySchedule::range(unsigned At) const {
  const Node &Moving = Nodes[Order[At]];
  unsigned First = 0, Last = Order.size() - 1;
  for (unsigned Other : Moving.Before)
    First = std::max(First, Position[Other] + 1);
  for (unsigned Other : Moving.After)
    Last = std::min(Last, Position[Other] - 1);
  for (unsigned Other = At; Other > First; --Other)
    if (Nodes[Order[Other - 1]].Pinned)
      First = Other;
  for (unsigned Other = At; Other < Last; ++Other)
    if (Nodes[Order[Other + 1]].Pinned)
      Last = Other;
  return Moving.Pinned ? std::pair(At, At) : std::pair(First, Last);
}

bool MemorySchedule::tryMove(unsigned From, unsigned To) {
  std::vector<unsigned> Tried = Order;
  if (From < To)
    std::rotate(Tried.begin() + From, Tried.begin() + From + 1, Tried.begin() + To + 1);
  else
    std::rotate(Tried.begin() + To, Tried.begin() + From, Tried.begin() + From + 1);
  Profile Result = measure(Tried);
  if (Result.Peak >= Current.Peak)
    return false;
  Order = std::move(Tried);
  Current = std::move(Result);
  for (unsigned At = 0; At < Order.size(); ++At)
    Position[Order[At]] = At;
  return true;
}

bool MemorySchedule::improve() {
  bool Moved = false;
  auto MoveOne = [&] {
    unsigned Peak = Current.At;
    // The operation at the peak itself: to where least is live, or to a place near by, which keeps what it reads live
    // for little longer.
    auto [First, Last] = range(Peak);
    std::vector<unsigned> Places;
    for (unsigned To = First; To <= Last; ++To)
      if (To != Peak)
        Places.push_back(To);
    auto Distance = [&](unsigned To) { return To > Peak ? To - Peak : Peak - To; };
    auto TryFirst = [&](auto Less) {
      llvm::stable_sort(Places, Less);
      return llvm::any_of(ArrayRef(Places).take_front(Window), [&](unsigned To) { return tryMove(Peak, To); });
    };
    if (TryFirst([&](unsigned L, unsigned R) { return Current.LiveBefore[L] < Current.LiveBefore[R]; }) ||
        TryFirst([&](unsigned L, unsigned R) { return Distance(L) < Distance(R); }))
      return true;
    // Operations before the peak to behind it, those behind it to before it: just past it, or as far as they go.
    for (unsigned Steps = 1; Steps <= Window; ++Steps) {
      if (Peak >= Steps) {
        unsigned From = Peak - Steps, To = range(From).second;
        if (To >= Peak && (tryMove(From, Peak) || tryMove(From, To)))
          return true;
      }
      if (Peak + Steps < Order.size()) {
        unsigned From = Peak + Steps, To = range(From).first;
        if (To <= Peak && (tryMove(From, Peak) || tryMove(From, To)))
          return true;
      }
    }
    return false;
  };
  for (unsigned Moves = 0; Moves < MostMoves && !Order.empty() && MoveOne(); ++Moves)
    Moved = true;
  return Moved;
}

void MemorySchedule::apply() {
  Operation *Terminator = Body.getTerminator();
  llvm::SetVector<Operation *> Unplaced;
  for (auto Reshape : Body.getOps<ReshapeOp>())
    Unplaced.insert(Reshape);
  std::function<void(Value)> Place = [&](Value V) {
    auto Reshape = V.getDefiningOp<ReshapeOp>();
    if (!Reshape || !Unplaced.remove(Reshape))
      return;
    Place(Reshape.getX());
    Reshape->moveBefore(Terminator);
  };
  for (unsigned Number : Order) {
    Operation *Op = Nodes[Number].Op;
    for (Value Operand : valuesRead(Op))
      Place(Operand);
    Op->moveBefore(Terminator);
  }
  for (Value Returned : Terminator->getOperands())
    Place(Returned);
  for (Operation *Unread : llvm::to_vector(Unplaced))
    Unread->moveBefore(Terminator);
}

} // namespace mpc
