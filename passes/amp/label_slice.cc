#include "passes/amp/label_slice.h"

#include "compiler/dialect/dialect.h"

using namespace mlir;

namespace mpc {

static bool collect(Value V, llvm::SetVector<Operation *> &Slice) {
  Operation *Op = V.getDefiningOp();
  if (!Op || isa<ConstantOp>(Op))
    return true;
  auto Amp = dyn_cast<AmpOpInterface>(Op);
  if (!Amp)
    return false;
  AmpClass Class = Amp.getAmpClass();
  bool Pointwise = Class == AmpClass::Clear || Class == AmpClass::Infer || Class == AmpClass::Deny;
  if (!Pointwise && !isa<CastOp>(Op))
    return false;
  if (!Slice.insert(Op))
    return true;
  return llvm::all_of(Op->getOperands(), [&](Value Operand) { return collect(Operand, Slice); });
}

llvm::SetVector<Operation *> labelSlice(Value Labels) {
  llvm::SetVector<Operation *> Slice;
  if (!collect(Labels, Slice))
    Slice.clear();
  return Slice;
}

} // namespace mpc
