#include "compiler/analysis/block_groups.h"

#include <cassert>

using namespace mlir;

namespace mpc {

BlockGroups::BlockGroups(Block &body) : body(body), dependences(body) {
  for (auto [number, op] : llvm::enumerate(dependences.getOperations())) {
    groupNumbers.push_back(number);
    groupMembers.push_back({op});
    places.push_back(number);
    groupAt.push_back(number);
  }
}

std::optional<unsigned> BlockGroups::groupOf(Operation *op) const {
  std::optional<unsigned> number = dependences.numberOf(body.findAncestorOpInBlock(*op));
  return number ? std::optional<unsigned>(groupNumbers[*number]) : std::nullopt;
}

bool BlockGroups::anyAfter(unsigned group, llvm::function_ref<bool(unsigned)> visit) const {
  assert(group < size());
  ++visits;
  for (Operation *op : groupMembers[group])
    for (unsigned next : dependences.after(numberOf(op)))
      if (visit(groupNumbers[next]))
        return true;
  return false;
}

// The way leads through places between the two groups'.
Operation *BlockGroups::onTheWay(unsigned from, unsigned to) const {
  assert(from < size() && to < size() && "the groups have numbers below the bound");
  assert(places[from] < places[to] && "no way leads back");
  llvm::SmallVector<char> seen(places[to] - places[from]);
  SmallVector<unsigned> stack;
  auto search = [&](unsigned group) {
    return anyAfter(group, [&](unsigned other) {
      if (other == to)
        return group != from;
      if (other != from && places[other] < places[to] && !std::exchange(seen[places[other] - places[from]], 1))
        stack.push_back(other);
      return false;
    });
  };
  search(from);
  while (!stack.empty()) {
    unsigned group = stack.pop_back_val();
    if (search(group))
      return groupMembers[group].front();
  }
  return nullptr;
}

Operation *BlockGroups::between(unsigned a, unsigned b) const {
  return places[a] < places[b] ? onTheWay(a, b) : onTheWay(b, a);
}

// What comes after the earlier of the two groups goes behind the merged one, the rest in front of it.
void BlockGroups::placeTogether(unsigned a, unsigned b) {
  unsigned first = std::min(places[a], places[b]), last = std::max(places[a], places[b]), free = first;
  auto put = [&](unsigned group) {
    places[group] = free;
    groupAt[free++] = group;
  };
  SmallVector<char> follows(last - first);
  SmallVector<unsigned> behind;
  for (unsigned place = first; place < last; ++place) {
    unsigned group = groupAt[place];
    ++visits;
    if (place != first && !follows[place - first]) {
      put(group);
      continue;
    }
    anyAfter(group, [&](unsigned other) {
      if (places[other] > place && places[other] < last)
        follows[places[other] - first] = 1;
      return false;
    });
    if (place != first)
      behind.push_back(group);
  }
  put(a);
  llvm::for_each(behind, put);
  put(b);
}

void BlockGroups::merge(unsigned a, unsigned b) {
  assert(a < size() && b < size() && "the groups have numbers below the bound");
  assert(a != b && "a group is not merged into itself");
  placeTogether(a, b);
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
