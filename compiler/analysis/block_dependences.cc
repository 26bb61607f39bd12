#include "compiler/analysis/block_dependences.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace mpc {

llvm::SmallSetVector<Value, 8> valuesRead(Operation *Op) {
  llvm::SmallSetVector<Value, 8> Values;
  Op->walk([&](Operation *Nested) {
    for (Value Operand : Nested->getOperands())
      if (Operand.getParentBlock() == Op->getBlock())
        Values.insert(Operand);
  });
  return Values;
}

// Maps each new shadow that \p Body returns to the shadow that it replaces. No operand says so, but the signature of
// the step does.
static llvm::DenseMap<Value, Value> oldShadows(Block &Body) {
  llvm::DenseMap<Value, Value> Old;
  auto Function = dyn_cast<func::FuncOp>(Body.getParentOp());
  if (!Function)
    return Old;
  StepSignature Signature(Function);
  for (OpOperand &Returned : Body.getTerminator()->getOpOperands())
    if (auto Update = dyn_cast<OpResult>(Returned.get()); Update && isShadow(Update))
      if (std::optional<unsigned> Argument = Signature.argumentOf(Returned.getOperandNumber()))
        Old[Update] = Function.getArgument(*Argument);
  return Old;
}

BlockDependences::BlockDependences(Block &Body) : OldShadows(oldShadows(Body)) {
  for (Operation &Op : Body.without_terminator())
    if (!isa<ViewLikeOpInterface>(Op)) {
      NumberOf[&Op] = Operations.size();
      Operations.push_back(&Op);
    }
  Before.resize(size());
  After.resize(size());
  for (unsigned Number = 0; Number < size(); ++Number)
    add(Number);
  OldShadows.clear();
  Readers.clear();
}

void BlockDependences::add(unsigned Number) {
  Operation *Op = Operations[Number];
  llvm::SmallSetVector<Value, 8> Read;
  for (Value V : valuesRead(Op))
    Read.insert(behindViews(V));
  for (Value V : Read)
    if (Operation *Producer = V.getDefiningOp())
      if (std::optional<unsigned> Known = numberOf(Producer))
        addEdge(*Known, Number);
  if (Op->hasTrait<StateUpdate>())
    for (OpResult Result : Op->getResults())
      if (Value Old = isShadow(Result) ? OldShadows.lookup(Result) : Op->getOperand(Result.getResultNumber()))
        for (unsigned Reader : Readers.lookup(behindViews(Old)))
          addEdge(Reader, Number);
  if (!isMemoryEffectFree(Op)) {
    if (LastEffect)
      addEdge(*LastEffect, Number);
    LastEffect = Number;
  }
  for (Value V : Read)
    Readers[V].push_back(Number);
}

void BlockDependences::addEdge(unsigned From, unsigned To) {
  After[From].push_back(To);
  Before[To].push_back(From);
}

std::optional<unsigned> BlockDependences::numberOf(Operation *Op) const {
  auto Known = NumberOf.find(Op);
  return Known == NumberOf.end() ? std::nullopt : std::optional<unsigned>(Known->second);
}

ViewMover::ViewMover(Block &Body) : Terminator(Body.getTerminator()) {
  for (auto View : Body.getOps<ViewLikeOpInterface>())
    Left.insert(View);
}

void ViewMover::moveFor(Value V) {
  auto View = V.getDefiningOp<ViewLikeOpInterface>();
  if (!View || !Left.remove(View))
    return;
  moveFor(View.getViewSource());
  View->moveBefore(Terminator);
}

void ViewMover::moveFor(Operation *Op) {
  for (Value Operand : valuesRead(Op))
    moveFor(Operand);
}

} // namespace mpc
