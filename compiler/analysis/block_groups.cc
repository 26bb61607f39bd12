#include "compiler/analysis/block_groups.h"

#include <cassert>

using namespace mlir;

namespace mpc {

BlockGroups::BlockGroups(Block &body) : body(body), dependences(body) {
  for (auto [number, op] : llvm::enumerate(dependences.getOperations())) {
    groupNumbers.push_back(number);
    groupMembers.push_back({op});
  }
}

std::optional<unsigned> BlockGroups::groupOf(Operation *op) const {
  std::optional<unsigned> number = dependences.numberOf(body.findAncestorOpInBlock(*op));
  return number ? std::optional<unsigned>(groupNumbers[*number]) : std::nullopt;
}

Operation *BlockGroups::onTheWay(unsigned from, unsigned to) const {
  assert(from < size() && to < size() && "the groups have numbers below the bound");
  llvm::SmallVector<char> seen(groupMembers.size());
  SmallVector<unsigned> stack;
  auto visit = [&](unsigned group) {
    for (Operation *op : groupMembers[group])
      for (unsigned next : dependences.after(numberOf(op))) {
        unsigned other = groupNumbers[next];
        if (other == to && group != from)
          return true;
        if (other != to && other != from && !std::exchange(seen[other], 1))
          stack.push_back(other);
      }
    return false;
  };
  visit(from);
  while (!stack.empty()) {
    unsigned group = stack.pop_back_val();
    if (visit(group))
      return groupMembers[group].front();
  }
  return nullptr;
}

Operation *BlockGroups::between(unsigned a, unsigned b) const {
  Operation *forth = onTheWay(a, b);
  return forth ? forth : onTheWay(b, a);
}

void BlockGroups::merge(unsigned a, unsigned b) {
  assert(a < size() && b < size() && "the groups have numbers below the bound");
  assert(a != b && "a group is not merged into itself");
  for (Operation *op : groupMembers[b])
    groupNumbers[numberOf(op)] = a;
  llvm::append_range(groupMembers[a], groupMembers[b]);
  groupMembers[b].clear();
  llvm::sort(groupMembers[a], [&](Operation *l, Operation *r) { return numberOf(l) < numberOf(r); });
}

SmallVector<unsigned> BlockGroups::groupsBefore(unsigned group) const {
  assert(group < size());
  llvm::SmallSetVector<unsigned, 8> groups;
  for (Operation *op : groupMembers[group])
    for (unsigned before : dependences.before(numberOf(op)))
      groups.insert(groupNumbers[before]);
  return groups.takeVector();
}

void BlockGroups::place(unsigned last, SmallVectorImpl<unsigned> &order, SmallVectorImpl<char> &placed) const {
  struct Waiting {
    unsigned group;
    SmallVector<unsigned> before; ///< the groups that it waits for
    unsigned next = 0;            ///< the first of them that has not been looked at
  };
  SmallVector<Waiting> stack;
  auto push = [&](unsigned group) {
    if (!std::exchange(placed[group], 1))
      stack.push_back({group, groupsBefore(group)});
  };
  assert(last < size() && placed.size() == size() && "each group has a mark of its own");
  push(last);
  while (!stack.empty()) {
    Waiting &top = stack.back();
    if (top.next < top.before.size()) {
      push(top.before[top.next++]);
      continue;
    }
    order.push_back(top.group);
    stack.pop_back();
  }
}

SmallVector<unsigned> BlockGroups::schedule() const {
  SmallVector<unsigned> order;
  SmallVector<char> placed(groupMembers.size());
  for (auto [number, op] : llvm::enumerate(dependences.getOperations()))
    if (unsigned group = groupNumbers[number]; groupMembers[group].back() == op)
      place(group, order, placed);
  return order;
}

} // namespace mpc
