#include "passes/precision/label_slice.h"

#include "compiler/dialect/dialect.h"

using namespace mlir;

namespace mpc {

// Arithmetic and movement, which a slice follows; matrix work, norms and losses end it.
static bool isPointwise(Operation *op) {
  auto amp = dyn_cast<AmpOpInterface>(op);
  if (!amp)
    return false;
  AmpClass ampClass = amp.getAmpClass();
  return ampClass == AmpClass::Clear || ampClass == AmpClass::Infer || ampClass == AmpClass::Deny || isa<CastOp>(op);
}

llvm::SetVector<Operation *> labelSlice(Value labels) {
  llvm::SetVector<Operation *> slice;
  SmallVector<Value> worklist{labels};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || isa<ConstantOp>(op))
      continue;
    if (!isPointwise(op))
      return {};
    if (slice.insert(op))
      llvm::append_range(worklist, llvm::reverse(op->getOperands()));
  }
  return slice;
}

} // namespace mpc
