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
  auto Inner = getX().getDefiningOp<CastOp>();
  if (Inner && Inner.getX().getType() == getY().getType() && widensExactly(elementOf(getY()), elementOf(getX())))
    return Inner.getX();
  return {};
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getX().getType() == getY().getType())
    return getX();
  if (auto Inner = getX().getDefiningOp<ReshapeOp>()) {
    getXMutable().assign(Inner.getX());
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  ArrayRef<int64_t> Permutation = getPermutation();
  bool Identity = true;
  for (auto [Index, Axis] : llvm::enumerate(Permutation))
    Identity &= int64_t(Index) == Axis;
  if (Identity)
    return getX();
  auto Inner = getX().getDefiningOp<TransposeOp>();
  if (!Inner)
    return {};
  for (auto [Index, Axis] : llvm::enumerate(Permutation))
    if (Inner.getPermutation()[Axis] != int64_t(Index))
      return {};
  return Inner.getX();
}

} // namespace mpc
