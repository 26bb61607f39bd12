#include "passes/fusion/kept_values.h"

#include "compiler/analysis/phases.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc {

int64_t bytesKeptMore(ArrayRef<Operation *> a, ArrayRef<Operation *> b,
                      llvm::function_ref<bool(Value)> isReadBackward) {
  bool isForwardA = llvm::none_of(a, isBackwardOp), isForwardB = llvm::none_of(b, isBackwardOp);
  if (isForwardA == isForwardB)
    return 0;
  ArrayRef<Operation *> forward = isForwardA ? a : b;
  llvm::SmallSetVector<Value, 8> read;
  int64_t bytes = 0;
  for (Operation *op : forward) {
    for (Value operand : op->getOperands())
      read.insert(behindViews(operand));
    for (Value result : op->getResults())
      if (isReadBackward(result))
        bytes -= bytesOf(result);
  }
  for (Value v : read) {
    auto made = dyn_cast<OpResult>(v);
    // Arguments and constants are there anyway; what the backward pass makes is made when the region runs.
    if (!made || isa<ConstantOp>(made.getOwner()) || !isForwardResult(made))
      continue;
    bool isInside = llvm::is_contained(a, made.getOwner()) || llvm::is_contained(b, made.getOwner());
    if (!isInside && !isReadBackward(v))
      bytes += bytesOf(v);
  }
  return bytes;
}

} // namespace mpc
