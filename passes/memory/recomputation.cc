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

void Recomputation::add(Value v, StringRef why) { reasons[v] = why; }

// The number of operations in a region, or 1 for an operation alone. Views do not count.
static unsigned operationsIn(Operation *op) {
  unsigned count = 0;
  op->walk([&](Operation *nested) { count += !isa<ViewLikeOpInterface, FusionOp, YieldOp>(nested); });
  return count;
}

static bool mayBeCopiedBefore(Operation *before, Operation *op, const BlockDependences &dependences) {
  auto isUpdated = [&](Value read) {
    std::optional<unsigned> update = dependences.updateOf(read);
    return update && dependences.getOperations()[*update]->isBeforeInBlock(before);
  };
  return mayRunAgain(op) && llvm::none_of(op->getOperands(), isUpdated);
}

void Recomputation::insertCopy(Operation *op, StringRef why, Operation *before) {
  // Everything that stands before it has been copied by now.
  Operation *copy = op->clone();
  for (OpOperand &operand : copy->getOpOperands())
    operand.set(newForm(operand.get()));
  copy->walk([](Operation *nested) {
    setRecomputeCall(nested, {});
    if (isa<YieldOp>(nested))
      return;
    dialectOf(nested).getRecomputedAttrHelper().setAttr(nested, UnitAttr::get(nested->getContext()));
    markBackward(nested);
  });
  OpBuilder(before).insert(copy);
  copies[op] = copy;
  summaries[why].operations += operationsIn(op);
}

Value Recomputation::newForm(Value v) const {
  Operation *copy = reasons.contains(v) ? copies.lookup(v.getDefiningOp()) : nullptr;
  return copy ? copy->getResult(cast<OpResult>(v).getResultNumber()) : v;
}

Value Recomputation::again(Value v, Operation *before, const BlockDependences &dependences) {
  struct Waiting {
    Operation *op;
    StringRef why;
    unsigned next = 0; ///< the first operand that has not been looked at
  };
  SmallVector<Waiting> stack;
  auto push = [&](Value value) {
    auto reason = reasons.find(value);
    if (reason == reasons.end() || copies.contains(value.getDefiningOp()))
      return;
    if (mayBeCopiedBefore(before, value.getDefiningOp(), dependences))
      stack.push_back({value.getDefiningOp(), reason->second});
  };
  push(v);
  while (!stack.empty()) {
    Waiting &top = stack.back();
    if (top.next < top.op->getNumOperands()) {
      push(top.op->getOperand(top.next++));
      continue;
    }
    insertCopy(top.op, top.why, before);
    stack.pop_back();
  }
  return newForm(v);
}

void Recomputation::apply() {
  if (reasons.empty())
    return;
  BlockDependences dependences(body);
  llvm::SetVector<Value> before = savedValues(body);
  SmallVector<Operation *> readers;
  for (Operation &op : body.without_terminator())
    if (isBackwardOp(&op))
      readers.push_back(&op);
  for (Operation *reader : readers)
    for (OpOperand &operand : reader->getOpOperands())
      if (isReadBackward(operand))
        operand.set(again(operand.get(), reader, dependences));
  llvm::SetVector<Value> after = savedValues(body);
  for (Value v : before)
    if (auto reason = reasons.find(v); reason != reasons.end() && !after.contains(v))
      summaries[reason->second].bytesSaved += bytesOf(v);
  eraseDeadOperations(body);
}

} // namespace mpc
