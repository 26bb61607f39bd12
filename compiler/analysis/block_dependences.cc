#include "compiler/analysis/block_dependences.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cassert>

using namespace mlir;

namespace mpc {

bool mayRunAgain(Operation *op) {
  WalkResult updates = op->walk([](Operation *nested) {
    return nested->hasTrait<StateUpdate>() ? WalkResult::interrupt() : WalkResult::advance();
  });
  return isMemoryEffectFree(op) && !updates.wasInterrupted();
}

static bool isFreeView(Operation *op) { return isa<ViewLikeOpInterface>(op) && !isWait(op); }

// The value that has to be there before \p v is read: a wait's result or what is no view.
static Value behindFreeViews(Value v) {
  for (Operation *op = v.getDefiningOp(); op && isFreeView(op); op = v.getDefiningOp())
    v = cast<ViewLikeOpInterface>(op).getViewSource();
  return v;
}

llvm::SmallSetVector<Value, 8> valuesRead(Operation *op) {
  llvm::SmallSetVector<Value, 8> values;
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (operand.getParentBlock() == op->getBlock())
        values.insert(operand);
  });
  return values;
}

// Maps each new low copy that \p body returns to the low copy that it replaces. No operand says so, but the signature
// of the step does.
static llvm::DenseMap<Value, Value> findOldLowCopies(Block &body) {
  llvm::DenseMap<Value, Value> old;
  auto function = dyn_cast<func::FuncOp>(body.getParentOp());
  if (!function)
    return old;
  StepSignature signature(function);
  for (OpOperand &returned : body.getTerminator()->getOpOperands())
    if (auto update = dyn_cast<OpResult>(returned.get()); update && isLowCopy(update))
      if (std::optional<unsigned> argument = signature.argumentOf(returned.getOperandNumber()))
        old[update] = function.getArgument(*argument);
  return old;
}

BlockDependences::BlockDependences(Block &body) : oldLowCopies(findOldLowCopies(body)) {
  for (Operation &op : body.without_terminator())
    if (!isFreeView(&op)) {
      numbers[&op] = operations.size();
      operations.push_back(&op);
    }
  predecessors.resize(size());
  successors.resize(size());
  storageRead.resize(size());
  for (unsigned number = 0; number < size(); ++number)
    add(number);
  oldLowCopies.clear();
}

llvm::ArrayRef<unsigned> BlockDependences::readersOf(Value v) const {
  auto known = readers.find(behindViews(v));
  return known == readers.end() ? llvm::ArrayRef<unsigned>() : llvm::ArrayRef<unsigned>(known->second);
}

std::optional<unsigned> BlockDependences::updateOf(Value v) const {
  auto known = firstUpdates.find(behindViews(v));
  return known == firstUpdates.end() ? std::nullopt : std::optional<unsigned>(known->second);
}

void BlockDependences::add(unsigned number) {
  Operation *op = operations[number];
  addReads(number);
  if (op->hasTrait<StateUpdate>())
    addUpdates(number);
  if (!isMemoryEffectFree(op)) {
    if (lastEffect)
      addEdge(*lastEffect, number);
    lastEffect = number;
  }
  for (Value v : storageRead[number])
    readers[v].push_back(number);
}

void BlockDependences::addReads(unsigned number) {
  Operation *op = operations[number];
  llvm::SmallSetVector<Value, 8> sources, storage;
  for (Value v : valuesRead(op)) {
    sources.insert(behindFreeViews(v));
    storage.insert(behindViews(v));
  }
  for (Value v : sources)
    if (Operation *producer = v.getDefiningOp())
      if (std::optional<unsigned> known = numberOf(producer))
        addEdge(*known, number);
  if (isWait(op))
    if (Operation *begun = behindViews(op->getResult(0)).getDefiningOp())
      for (Value v : valuesRead(begun))
        storage.insert(behindViews(v));
  storageRead[number].assign(storage.begin(), storage.end());
}

void BlockDependences::addUpdates(unsigned number) {
  Operation *op = operations[number];
  for (OpResult result : op->getResults())
    if (Value old = isLowCopy(result) ? oldLowCopies.lookup(result) : op->getOperand(result.getResultNumber())) {
      for (unsigned reader : readersOf(old))
        addEdge(reader, number);
      firstUpdates.try_emplace(behindViews(old), number);
    }
}

void BlockDependences::addEdge(unsigned from, unsigned to) {
  assert(from < to && to < size() && "an operation depends on earlier ones only");
  successors[from].push_back(to);
  predecessors[to].push_back(from);
}

std::optional<unsigned> BlockDependences::numberOf(Operation *op) const {
  auto known = numbers.find(op);
  return known == numbers.end() ? std::nullopt : std::optional<unsigned>(known->second);
}

ViewMover::ViewMover(Block &body) : terminator(body.getTerminator()) {
  for (Operation &op : body)
    if (isFreeView(&op))
      views.push_back(&op);
  left.insert_range(views);
}

SmallVector<Operation *> ViewMover::getLeft() const {
  SmallVector<Operation *> unread;
  llvm::copy_if(views, std::back_inserter(unread), [&](Operation *view) { return left.contains(view); });
  return unread;
}

void ViewMover::moveFor(Value v) {
  SmallVector<Operation *> chain;
  for (auto view = v.getDefiningOp<ViewLikeOpInterface>(); view && left.erase(view);
       view = view.getViewSource().getDefiningOp<ViewLikeOpInterface>())
    chain.push_back(view);
  for (Operation *view : llvm::reverse(chain))
    view->moveBefore(terminator);
}

void ViewMover::moveFor(Operation *op) {
  for (Value operand : valuesRead(op))
    moveFor(operand);
}

} // namespace mpc
