// Exact folders: each keeps every bit.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getX().getType() == getY().getType())
    return getX();
  // trunc(ext(x)) is x; ext(trunc(x)) drops a rounding and stays.
  auto inner = getX().getDefiningOp<CastOp>();
  if (inner && inner.getX().getType() == getY().getType() && widensExactly(elementOf(getY()), elementOf(getX())))
    return inner.getX();
  return {};
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getX().getType() == getY().getType())
    return getX();
  if (auto inner = getX().getDefiningOp<ReshapeOp>()) {
    getXMutable().assign(inner.getX());
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  ArrayRef<int64_t> permutation = getPermutation();
  bool identity = true;
  for (auto [index, axis] : llvm::enumerate(permutation))
    identity &= int64_t(index) == axis;
  if (identity)
    return getX();
  auto inner = getX().getDefiningOp<TransposeOp>();
  if (!inner)
    return {};
  for (auto [index, axis] : llvm::enumerate(permutation))
    if (inner.getPermutation()[axis] != int64_t(index))
      return {};
  return inner.getX();
}

} // namespace mpc
