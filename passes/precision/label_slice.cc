#include "passes/precision/label_slice.h"

#include "compiler/dialect/dialect.h"

using namespace mlir;

namespace mpc {

// Arithmetic and movement, which a slice follows; matrix work, norms and losses end it.
static bool isPointwise(Operation *Op) {
  auto Amp = dyn_cast<AmpOpInterface>(Op);
  if (!Amp)
    return false;
  AmpClass Class = Amp.getAmpClass();
  return Class == AmpClass::Clear || Class == AmpClass::Infer || Class == AmpClass::Deny || isa<CastOp>(Op);
}

llvm::SetVector<Operation *> labelSlice(Value Labels) {
  llvm::SetVector<Operation *> Slice;
  SmallVector<Value> Worklist{Labels};
  while (!Worklist.empty()) {
    Operation *Op = Worklist.pop_back_val().getDefiningOp();
    if (!Op || isa<ConstantOp>(Op))
      continue;
    if (!isPointwise(Op))
      return {};
    if (Slice.insert(Op))
      llvm::append_range(Worklist, llvm::reverse(Op->getOperands()));
  }
  return Slice;
}

} // namespace mpc
