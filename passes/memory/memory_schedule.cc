#include "passes/memory/memory_schedule.h"

#include "compiler/analysis/block_dependences.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/ADT/SetVector.h"

#include <algorithm>
#include <cassert>

using namespace mlir;

namespace mpc {

/// How many positions from the peak's operation others are tried.
static constexpr unsigned window = 24;
/// The bound of the pass's work: positions looked at while moves are tried, for each operation of the block.
static constexpr uint64_t workAnOperation = 4096;
/// Storage is padded to cache lines.
static constexpr int64_t line = 64;

unsigned MemorySchedule::storageOf(Value v) {
  Value source = behindViews(v);
  auto [entry, isNew] = numbers.try_emplace(source, bytes.size());
  if (!isNew)
    return entry->second;
  // Arguments of a sequence are where it is called.
  bool input = isa<BlockArgument>(source) && isInput(roleOf(source)) && !isSequence(body.getParentOp());
  bool elsewhere = (isa<BlockArgument>(source) && !input) || source.getDefiningOp<ConstantOp>();
  bytes.push_back(elsewhere ? 0 : llvm::alignTo(bytesOf(source), line));
  isInputStorage.push_back(input);
  isResult.push_back(false);
  return entry->second;
}

void MemorySchedule::addNode(Operation *op, const BlockDependences &dependences, const MemoryModel &model) {
  unsigned number = nodes.size();
  assert(dependences.numberOf(op) && "views and constants are no nodes");
  Node replacement;
  replacement.op = op;
  replacement.pinned = op->hasTrait<StateUpdate>();
  replacement.stays = !mayRunAgain(op);
  replacement.scratch = model.scratch ? model.scratch(op) : 0;
  llvm::SmallSetVector<unsigned, 8> reads;
  unsigned ofBlock = *dependences.numberOf(op);
  for (Value operand : dependences.reads(ofBlock))
    reads.insert(storageOf(operand));
  llvm::SmallSetVector<unsigned, 8> before;
  for (unsigned other : dependences.before(ofBlock))
    if (auto known = nodeOf.find(dependences.getOperations()[other]); known != nodeOf.end())
      before.insert(known->second);
  replacement.reads.assign(reads.begin(), reads.end());
  replacement.before.assign(before.begin(), before.end());
  Aliasing mayAlias = model.aliasing ? model.aliasing(op) : Aliasing();
  for (OpResult result : op->getResults()) {
    // What it waits for has storage already.
    if (isWait(op))
      continue;
    unsigned storage = storageOf(result);
    // An update writes over the state that it reads.
    if (replacement.pinned)
      bytes[storage] = 0;
    replacement.writes.push_back(storage);
    for (OpOperand &operand : op->getOpOperands())
      if (mayAlias && operand.get().getType() == result.getType() && bytes[storageOf(operand.get())] > 0 &&
          mayAlias(result.getResultNumber(), operand.getOperandNumber()))
        replacement.aliases.emplace_back(storage, storageOf(operand.get()));
  }
  for (unsigned other : replacement.before)
    nodes[other].after.push_back(number);
  nodeOf[op] = number;
  nodes.push_back(std::move(replacement));
}

MemorySchedule::MemorySchedule(Block &body, const MemoryModel &model) : body(body) {
  for (BlockArgument argument : body.getArguments())
    storageOf(argument);
  BlockDependences dependences(body);
  for (Operation *op : dependences.getOperations())
    if (!isa<ConstantOp>(op))
      addNode(op, dependences, model);
  for (Value returned : body.getTerminator()->getOperands())
    isResult[storageOf(returned)] = true;
  for (unsigned number = 0; number < nodes.size(); ++number) {
    order.push_back(number);
    position.push_back(number);
  }
  lastInside.resize(bytes.size());
  measure();
}

int64_t MemorySchedule::step(const Node &here, llvm::function_ref<bool(unsigned)> endsHere, int64_t &live) const {
  auto dies = [&](unsigned storage) { return !isResult[storage] && endsHere(storage); };
  SmallVector<unsigned, 4> dying;
  for (unsigned storage : here.reads)
    if (bytes[storage] > 0 && dies(storage))
      dying.push_back(storage);
  SmallVector<unsigned, 4> taken, placed;
  for (auto [written, read] : here.aliases)
    if (llvm::is_contained(dying, read) && !llvm::is_contained(taken, read) && !llvm::is_contained(placed, written)) {
      taken.push_back(read);
      placed.push_back(written);
    }
  int64_t made = 0, freed = 0;
  for (unsigned storage : here.writes) {
    made += llvm::is_contained(placed, storage) ? 0 : bytes[storage];
    freed += dies(storage) ? bytes[storage] : 0;
  }
  for (unsigned storage : dying)
    freed += llvm::is_contained(taken, storage) ? 0 : bytes[storage];
  int64_t total = live + made + llvm::alignTo(here.scratch, line);
  live += made - freed;
  return total;
}

void MemorySchedule::measure() {
  current = Profile();
  current.lastUse.resize(bytes.size());
  for (unsigned at = 0; at < order.size(); ++at) {
    position[order[at]] = at;
    for (unsigned storage : nodes[order[at]].reads)
      current.lastUse[storage] = at;
    for (unsigned storage : nodes[order[at]].writes)
      current.lastUse[storage] = at;
  }
  int64_t live = 0;
  for (unsigned storage = 0; storage < bytes.size(); ++storage)
    live += isInputStorage[storage] ? bytes[storage] : 0;
  for (unsigned at = 0; at < order.size(); ++at) {
    current.liveBefore.push_back(live);
    int64_t total = step(
        nodes[order[at]], [&](unsigned storage) { return current.lastUse[storage] == at; }, live);
    if (total > current.peak) {
      current.peak = total;
      current.at = at;
    }
    if (total >= current.peak)
      current.lastAt = at;
  }
}

std::pair<unsigned, unsigned> MemorySchedule::range(unsigned at) const {
  assert(at < order.size());
  const Node &moving = nodes[order[at]];
  unsigned first = 0, last = order.size() - 1;
  for (unsigned other : moving.before)
    first = std::max(first, position[other] + 1);
  for (unsigned other : moving.after)
    last = std::min(last, position[other] - 1);
  for (unsigned other = at; other > first; --other)
    if (nodes[order[other - 1]].pinned)
      first = other;
  for (unsigned other = at; other < last; ++other)
    if (nodes[order[other + 1]].pinned)
      last = other;
  assert(first <= at && at <= last && "an operation may stay where it is");
  return moving.stays ? std::pair(at, at) : std::pair(first, last);
}

bool MemorySchedule::lowersPeak(unsigned from, unsigned to) {
  unsigned first = std::min(from, to), last = std::max(from, to);
  assert(first < last && last < order.size() && "a move leads to another position");
  // Nothing changes outside.
  if (current.at < first || current.lastAt > last)
    return false;
  work += last - first + 1;
  auto nodeAt = [&](unsigned at) -> const Node & {
    if (at == to)
      return nodes[order[from]];
    return nodes[order[from < to ? at + 1 : at - 1]];
  };
  for (unsigned at = first; at <= last; ++at) {
    for (unsigned storage : nodeAt(at).reads)
      lastInside[storage] = at;
    for (unsigned storage : nodeAt(at).writes)
      lastInside[storage] = at;
  }
  int64_t live = current.liveBefore[first];
  for (unsigned at = first; at <= last; ++at) {
    auto endsHere = [&](unsigned storage) { return lastInside[storage] == at && current.lastUse[storage] <= last; };
    if (step(nodeAt(at), endsHere, live) >= current.peak)
      return false;
  }
  return true;
}

bool MemorySchedule::tryMove(unsigned from, unsigned to) {
  if (!lowersPeak(from, to))
    return false;
  if (from < to)
    std::rotate(order.begin() + from, order.begin() + from + 1, order.begin() + to + 1);
  else
    std::rotate(order.begin() + to, order.begin() + from, order.begin() + from + 1);
  measure();
  return true;
}

bool MemorySchedule::improve() {
  bool moved = false;
  auto moveOne = [&] {
    unsigned peak = current.at;
    // Move the operation at the peak itself to where least is live, or to a place near by. A near place keeps what the
    // operation reads live for little longer.
    auto [first, last] = range(peak);
    std::vector<unsigned> places;
    for (unsigned to = first; to <= last; ++to)
      if (to != peak)
        places.push_back(to);
    auto distance = [&](unsigned to) { return to > peak ? to - peak : peak - to; };
    auto tryFirst = [&](auto less) {
      llvm::stable_sort(places, less);
      return llvm::any_of(ArrayRef(places).take_front(window), [&](unsigned to) { return tryMove(peak, to); });
    };
    if (tryFirst([&](unsigned l, unsigned r) { return current.liveBefore[l] < current.liveBefore[r]; }) ||
        tryFirst([&](unsigned l, unsigned r) { return distance(l) < distance(r); }))
      return true;
    // Operations before the peak to behind it, those behind it to before it: just past it, or as far as they go.
    for (unsigned steps = 1; steps <= window; ++steps) {
      if (peak >= steps) {
        unsigned from = peak - steps, to = range(from).second;
        if (to >= peak && (tryMove(from, peak) || tryMove(from, to)))
          return true;
      }
      if (peak + steps < order.size()) {
        unsigned from = peak + steps, to = range(from).first;
        if (to <= peak && (tryMove(from, peak) || tryMove(from, to)))
          return true;
      }
    }
    return false;
  };
  while (work < workAnOperation * order.size() && moveOne())
    moved = true;
  return moved;
}

void MemorySchedule::apply() {
  assert(order.size() == nodes.size() && "the order names every operation");
  Operation *terminator = body.getTerminator();
  ViewMover views(body);
  for (unsigned number : order) {
    views.moveFor(nodes[number].op);
    nodes[number].op->moveBefore(terminator);
  }
  views.moveFor(terminator);
  for (Operation *unread : views.getLeft())
    unread->moveBefore(terminator);
}

} // namespace mpc
