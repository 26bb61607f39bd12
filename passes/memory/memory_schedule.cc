#include "passes/memory/memory_schedule.h"

#include "compiler/analysis/block_dependences.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>

using namespace mlir;

namespace mpc {

/// How many positions from the peak's operation others are tried.
static constexpr unsigned Window = 24;
/// The bound of the pass's work: positions looked at while moves are tried, for each operation of the block.
static constexpr uint64_t WorkAnOperation = 4096;
/// Storage is padded to cache lines.
static constexpr int64_t Line = 64;

unsigned MemorySchedule::storageOf(Value V) {
  Value Source = behindViews(V);
  auto [Entry, New] = Numbers.try_emplace(Source, Bytes.size());
  if (!New)
    return Entry->second;
  // Arguments of a sequence are where it is called.
  bool Input = isa<BlockArgument>(Source) && isInput(roleOf(Source)) && !isSequence(Body.getParentOp());
  bool Elsewhere = (isa<BlockArgument>(Source) && !Input) || Source.getDefiningOp<ConstantOp>();
  Bytes.push_back(Elsewhere ? 0 : llvm::alignTo(bytesOf(Source), Line));
  IsInput.push_back(Input);
  IsResult.push_back(false);
  return Entry->second;
}

void MemorySchedule::addNode(Operation *Op, const BlockDependences &Dependences, const MemoryModel &Model) {
  unsigned Number = Nodes.size();
  Node New;
  New.Op = Op;
  New.Pinned = Op->hasTrait<StateUpdate>();
  New.Workspace = Model.Workspace ? Model.Workspace(Op) : 0;
  llvm::SmallSetVector<unsigned, 8> Reads;
  for (Value Operand : valuesRead(Op))
    Reads.insert(storageOf(Operand));
  llvm::SmallSetVector<unsigned, 8> Before;
  for (unsigned Other : Dependences.before(*Dependences.numberOf(Op)))
    if (auto Known = NodeOf.find(Dependences.operations()[Other]); Known != NodeOf.end())
      Before.insert(Known->second);
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
  BlockDependences Dependences(Body);
  for (Operation &Op : Body.without_terminator())
    if (!isViewOrConstant(&Op))
      addNode(&Op, Dependences, Model);
  for (Value Returned : Body.getTerminator()->getOperands())
    IsResult[storageOf(Returned)] = true;
  for (unsigned Number = 0; Number < Nodes.size(); ++Number) {
    Order.push_back(Number);
    Position.push_back(Number);
  }
  LastInside.resize(Bytes.size());
  measure();
}

int64_t MemorySchedule::step(const Node &Here, llvm::function_ref<bool(unsigned)> EndsHere, int64_t &Live) const {
  auto Dies = [&](unsigned Storage) { return !IsResult[Storage] && EndsHere(Storage); };
  SmallVector<unsigned, 4> Dying;
  for (unsigned Storage : Here.Reads)
    if (Bytes[Storage] > 0 && Dies(Storage))
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
    Freed += Dies(Storage) ? Bytes[Storage] : 0;
  }
  for (unsigned Storage : Dying)
    Freed += llvm::is_contained(Taken, Storage) ? 0 : Bytes[Storage];
  int64_t Total = Live + Made + llvm::alignTo(Here.Workspace, Line);
  Live += Made - Freed;
  return Total;
}

void MemorySchedule::measure() {
  Current = Profile();
  Current.LastUse.resize(Bytes.size());
  for (unsigned At = 0; At < Order.size(); ++At) {
    Position[Order[At]] = At;
    for (unsigned Storage : Nodes[Order[At]].Reads)
      Current.LastUse[Storage] = At;
    for (unsigned Storage : Nodes[Order[At]].Writes)
      Current.LastUse[Storage] = At;
  }
  int64_t Live = 0;
  for (unsigned Storage = 0; Storage < Bytes.size(); ++Storage)
    Live += IsInput[Storage] ? Bytes[Storage] : 0;
  for (unsigned At = 0; At < Order.size(); ++At) {
    Current.LiveBefore.push_back(Live);
    int64_t Total = step(
        Nodes[Order[At]], [&](unsigned Storage) { return Current.LastUse[Storage] == At; }, Live);
    if (Total > Current.Peak) {
      Current.Peak = Total;
      Current.At = At;
    }
    if (Total >= Current.Peak)
      Current.LastAt = At;
  }
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

bool MemorySchedule::lowersPeak(unsigned From, unsigned To) {
  unsigned First = std::min(From, To), Last = std::max(From, To);
  // Nothing changes outside.
  if (Current.At < First || Current.LastAt > Last)
    return false;
  Work += Last - First + 1;
  auto NodeAt = [&](unsigned At) -> const Node & {
    if (At == To)
      return Nodes[Order[From]];
    return Nodes[Order[From < To ? At + 1 : At - 1]];
  };
  for (unsigned At = First; At <= Last; ++At) {
    for (unsigned Storage : NodeAt(At).Reads)
      LastInside[Storage] = At;
    for (unsigned Storage : NodeAt(At).Writes)
      LastInside[Storage] = At;
  }
  int64_t Live = Current.LiveBefore[First];
  for (unsigned At = First; At <= Last; ++At) {
    auto EndsHere = [&](unsigned Storage) { return LastInside[Storage] == At && Current.LastUse[Storage] <= Last; };
    if (step(NodeAt(At), EndsHere, Live) >= Current.Peak)
      return false;
  }
  return true;
}

bool MemorySchedule::tryMove(unsigned From, unsigned To) {
  if (!lowersPeak(From, To))
    return false;
  if (From < To)
    std::rotate(Order.begin() + From, Order.begin() + From + 1, Order.begin() + To + 1);
  else
    std::rotate(Order.begin() + To, Order.begin() + From, Order.begin() + From + 1);
  measure();
  return true;
}

bool MemorySchedule::improve() {
  bool Moved = false;
  auto MoveOne = [&] {
    unsigned Peak = Current.At;
    // Move the operation at the peak itself to where least is live, or to a place near by. A near place keeps what the
    // operation reads live for little longer.
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
  while (Work < WorkAnOperation * Order.size() && MoveOne())
    Moved = true;
  return Moved;
}

void MemorySchedule::apply() {
  Operation *Terminator = Body.getTerminator();
  ViewMover Views(Body);
  for (unsigned Number : Order) {
    Views.moveFor(Nodes[Number].Op);
    Nodes[Number].Op->moveBefore(Terminator);
  }
  Views.moveFor(Terminator);
  for (Operation *Unread : Views.left())
    Unread->moveBefore(Terminator);
}

} // namespace mpc
