#include "compiler/analysis/block_dependences.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cassert>

using namespace mlir;

namespace mpc {

llvm::SmallSetVector<Value, 8> valuesRead(Operation *op) {
  llvm::SmallSetVector<Value, 8> values;
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands())
      if (operand.getParentBlock() == op->getBlock())
        values.insert(operand);
  });
  return values;
}

// Maps each new shadow that \p body returns to the shadow that it replaces. No operand says so, but the signature of
// the step does.
static llvm::DenseMap<Value, Value> findOldShadows(Block &body) {
  llvm::DenseMap<Value, Value> old;
  auto function = dyn_cast<func::FuncOp>(body.getParentOp());
  if (!function)
    return old;
  StepSignature signature(function);
  for (OpOperand &returned : body.getTerminator()->getOpOperands())
    if (auto update = dyn_cast<OpResult>(returned.get()); update && isShadow(update))
      if (std::optional<unsigned> argument = signature.argumentOf(returned.getOperandNumber()))
        old[update] = function.getArgument(*argument);
  return old;
}

BlockDependences::BlockDependences(Block &body) : oldShadows(findOldShadows(body)) {
  for (Operation &op : body.without_terminator())
    if (!isa<ViewLikeOpInterface>(op)) {
      numbers[&op] = operations.size();
      operations.push_back(&op);
    }
  predecessors.resize(size());
  successors.resize(size());
  for (unsigned number = 0; number < size(); ++number)
    add(number);
  oldShadows.clear();
  readers.clear();
}

void BlockDependences::add(unsigned number) {
  Operation *op = operations[number];
  llvm::SmallSetVector<Value, 8> read;
  for (Value v : valuesRead(op))
    read.insert(behindViews(v));
  for (Value v : read)
    if (Operation *producer = v.getDefiningOp())
      if (std::optional<unsigned> known = numberOf(producer))
        addEdge(*known, number);
  if (op->hasTrait<StateUpdate>())
    for (OpResult result : op->getResults())
      if (Value old = isShadow(result) ? oldShadows.lookup(result) : op->getOperand(result.getResultNumber()))
        for (unsigned reader : readers.lookup(behindViews(old)))
          addEdge(reader, number);
  if (!isMemoryEffectFree(op)) {
    if (lastEffect)
      addEdge(*lastEffect, number);
    lastEffect = number;
  }
  for (Value v : read)
    readers[v].push_back(number);
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
  for (auto view : body.getOps<ViewLikeOpInterface>())
    left.insert(view);
}

void ViewMover::moveFor(Value v) {
  auto view = v.getDefiningOp<ViewLikeOpInterface>();
  if (!view || !left.remove(view))
    return;
  moveFor(view.getViewSource());
  view->moveBefore(terminator);
}

void ViewMover::moveFor(Operation *op) {
  for (Value operand : valuesRead(op))
    moveFor(operand);
}

} // namespace mpc
