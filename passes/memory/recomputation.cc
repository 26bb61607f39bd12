#include "passes/memory/recomputation.h"

#include "compiler/analysis/phases.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/tensor_values.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/computations.h"

using namespace mlir;

namespace mpc {

void Recomputation::add(Value V, StringRef Why) { Reasons[V] = Why; }

// The number of operations in a region, or 1 for an operation alone. Views do not count.
static unsigned operationsIn(Operation *Op) {
  unsigned Count = 0;
  Op->walk([&](Operation *Nested) { Count += !isa<ViewLikeOpInterface, FusionOp, YieldOp>(Nested); });
  return Count;
}

Value Recomputation::again(Value V, Operation *Before) {
  auto Reason = Reasons.find(V);
  if (Reason == Reasons.end())
    return V;
  Operation *Op = V.getDefiningOp();
  unsigned Result = cast<OpResult>(V).getResultNumber();
  if (Operation *Copy = Copies.lookup(Op))
    return Copy->getResult(Result);
  SmallVector<Value> Operands = llvm::map_to_vector(Op->getOperands(), [&](Value O) { return again(O, Before); });
  // Everything that stands before it has been copied by now.
  Operation *Copy = Op->clone();
  Copy->setOperands(Operands);
  Copy->walk([](Operation *Nested) {
    setRecomputeCall(Nested, {});
    if (isa<YieldOp>(Nested))
      return;
    dialectOf(Nested).getRecomputedAttrHelper().setAttr(Nested, UnitAttr::get(Nested->getContext()));
    markBackward(Nested);
  });
  OpBuilder(Before).insert(Copy);
  Copies[Op] = Copy;
  Summaries[Reason->second].Operations += operationsIn(Op);
  return Copy->getResult(Result);
}

void Recomputation::apply() {
  if (Reasons.empty())
    return;
  llvm::SetVector<Value> Before = savedValues(Body);
  SmallVector<Operation *> Readers;
  for (Operation &Op : Body.without_terminator())
    if (isBackwardOp(&Op))
      Readers.push_back(&Op);
  for (Operation *Reader : Readers)
    for (OpOperand &Operand : Reader->getOpOperands())
      if (isReadBackward(Operand))
        Operand.set(again(Operand.get(), Reader));
  llvm::SetVector<Value> After = savedValues(Body);
  for (Value V : Before)
    if (auto Reason = Reasons.find(V); Reason != Reasons.end() && !After.contains(V))
      Summaries[Reason->second].BytesSaved += bytesOf(V);
  eraseDeadOperations(Body);
}

} // namespace mpc
