#include "passes/memory/saved_values.h"

#include "compiler/dialect/dialect.h"

using namespace mlir;

namespace mpc {

bool isBackwardOp(Operation *Op) {
  if (Op->hasAttr(BackwardAttrName))
    return true;
  auto Fusion = dyn_cast<FusionOp>(Op);
  return Fusion && llvm::any_of(Fusion.getBody().front(), [](Operation &Nested) { return isBackwardOp(&Nested); });
}

bool isMovementOrCast(Operation *Op) { return isa<ReshapeOp, TransposeOp, BroadcastToOp, CastOp>(Op); }

int64_t bytesOf(Value V) {
  auto Tensor = dyn_cast<RankedTensorType>(V.getType());
  if (!Tensor || !Tensor.hasStaticShape() || !Tensor.getElementType().isIntOrFloat())
    return 0;
  return Tensor.getNumElements() * ((Tensor.getElementTypeBitWidth() + 7) / 8);
}

static bool isReadBackward(Value V) {
  return llvm::any_of(V.getUsers(), [](Operation *User) {
    if (auto Reshape = dyn_cast<ReshapeOp>(User); Reshape && !isBackwardOp(User))
      return isReadBackward(Reshape.getY());
    return isBackwardOp(User);
  });
}

llvm::SetVector<Value> savedValues(Block &Body) {
  llvm::SetVector<Value> Saved;
  for (Operation &Op : Body.without_terminator()) {
    if (isBackwardOp(&Op) || isa<ReshapeOp, ConstantOp>(Op))
      continue;
    for (Value Result : Op.getResults())
      if (isReadBackward(Result))
        Saved.insert(Result);
  }
  return Saved;
}

} // namespace mpc
