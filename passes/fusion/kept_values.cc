#include "passes/fusion/kept_values.h"

#include "compiler/analysis/phases.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace mpc {

int64_t bytesKeptMore(ArrayRef<Operation *> A, ArrayRef<Operation *> B) {
  bool IsForwardA = llvm::none_of(A, isBackwardOp), IsForwardB = llvm::none_of(B, isBackwardOp);
  if (IsForwardA == IsForwardB)
    return 0;
  ArrayRef<Operation *> Forward = IsForwardA ? A : B;
  llvm::SmallSetVector<Value, 8> Read;
  int64_t Bytes = 0;
  for (Operation *Op : Forward) {
    for (Value Operand : Op->getOperands())
      Read.insert(behindViews(Operand));
    for (Value Result : Op->getResults())
      if (isReadBackward(Result))
        Bytes -= bytesOf(Result);
  }
  for (Value V : Read) {
    auto Made = dyn_cast<OpResult>(V);
    // Arguments and constants are there anyway; what the backward pass makes is made when the region runs.
    if (!Made || isa<ConstantOp>(Made.getOwner()) || !isForwardResult(Made))
      continue;
    bool IsInside = llvm::is_contained(A, Made.getOwner()) || llvm::is_contained(B, Made.getOwner());
    if (!IsInside && !isReadBackward(V))
      Bytes += bytesOf(V);
  }
  return Bytes;
}

} // namespace mpc
