#include "compiler/analysis/block_groups.h"

using namespace mlir;

namespace mpc {

BlockGroups::BlockGroups(Block &Body) : Body(Body), Dependences(Body) {
  for (auto [Number, Op] : llvm::enumerate(Dependences.operations())) {
    GroupOf.push_back(Number);
    Members.push_back({Op});
  }
}

std::optional<unsigned> BlockGroups::groupOf(Operation *Op) const {
  std::optional<unsigned> Number = Dependences.numberOf(Body.findAncestorOpInBlock(*Op));
  return Number ? std::optional<unsigned>(GroupOf[*Number]) : std::nullopt;
}

Operation *BlockGroups::onTheWay(unsigned From, unsigned To) const {
  llvm::SmallVector<char> Seen(Members.size());
  SmallVector<unsigned> Stack;
  auto Visit = [&](unsigned Group) {
    for (Operation *Op : Members[Group])
      for (unsigned Next : Dependences.after(numberOf(Op))) {
        unsigned Other = GroupOf[Next];
        if (Other == To && Group != From)
          return true;
        if (Other != To && Other != From && !std::exchange(Seen[Other], 1))
          Stack.push_back(Other);
      }
    return false;
  };
  Visit(From);
  while (!Stack.empty()) {
    unsigned Group = Stack.pop_back_val();
    if (Visit(Group))
      return Members[Group].front();
  }
  return nullptr;
}

Operation *BlockGroups::between(unsigned A, unsigned B) const {
  Operation *Forth = onTheWay(A, B);
  return Forth ? Forth : onTheWay(B, A);
}

void BlockGroups::merge(unsigned A, unsigned B) {
  for (Operation *Op : Members[B])
    GroupOf[numberOf(Op)] = A;
  llvm::append_range(Members[A], Members[B]);
  Members[B].clear();
  llvm::sort(Members[A], [&](Operation *L, Operation *R) { return numberOf(L) < numberOf(R); });
}

SmallVector<unsigned> BlockGroups::groupsBefore(unsigned Group) const {
  llvm::SmallSetVector<unsigned, 8> Groups;
  for (Operation *Op : Members[Group])
    for (unsigned Before : Dependences.before(numberOf(Op)))
      Groups.insert(GroupOf[Before]);
  return Groups.takeVector();
}

void BlockGroups::place(unsigned Last, SmallVectorImpl<unsigned> &Order, SmallVectorImpl<char> &Placed) const {
  struct Waiting {
    unsigned Group;
    SmallVector<unsigned> Before; ///< the groups that it waits for
    unsigned Next = 0;            ///< the first of them that has not been looked at
  };
  SmallVector<Waiting> Stack;
  auto Push = [&](unsigned Group) {
    if (!std::exchange(Placed[Group], 1))
      Stack.push_back({Group, groupsBefore(Group)});
  };
  Push(Last);
  while (!Stack.empty()) {
    Waiting &Top = Stack.back();
    if (Top.Next < Top.Before.size()) {
      Push(Top.Before[Top.Next++]);
      continue;
    }
    Order.push_back(Top.Group);
    Stack.pop_back();
  }
}

SmallVector<unsigned> BlockGroups::schedule() const {
  SmallVector<unsigned> Order;
  SmallVector<char> Placed(Members.size());
  for (auto [Number, Op] : llvm::enumerate(Dependences.operations()))
    if (unsigned Group = GroupOf[Number]; Members[Group].back() == Op)
      place(Group, Order, Placed);
  return Order;
}

} // namespace mpc
