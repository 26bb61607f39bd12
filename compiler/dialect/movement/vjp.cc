// Derivatives of operations that move parts of tensors and look values up.
#include "compiler/dialect/tensor_values.h"
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

Cotangents ConcatOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(getNumOperands());
  int64_t rank = tensorTypeOf(getY()).getRank(), axis = int64_t(getAxis());
  if (axis < 0)
    axis += rank;
  SmallVector<int64_t> starts(rank, 0);
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    RankedTensorType type = tensorTypeOf(input);
    if (needed[index])
      result[index] = moveBack<SliceOp>(builder, getLoc(), dy[0], input, starts, type.getShape());
    starts[axis] += type.getDimSize(axis);
  }
  return result;
}

Cotangents SliceOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<int64_t> high;
  for (auto [extent, start, size] : llvm::zip_equal(tensorTypeOf(getX()).getShape(), getStarts(), getSizes()))
    high.push_back(extent - start - size);
  return firstCotangent(needed, [&] {
    return moveBack<PadOp>(builder, getLoc(), dy[0], getX(), getStarts(), high, llvm::APFloat(0.0f));
  });
}

Cotangents SplitOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&] {
    Type element = elementOf(getX());
    SmallVector<Value> parts;
    for (auto [cotangent, piece] : llvm::zip_equal(dy, getPieces())) {
      if (cotangent) {
        parts.push_back(castTo(builder, getLoc(), cotangent, element));
        continue;
      }
      RankedTensorType type = withElementType(tensorTypeOf(piece), element);
      auto zero = DenseElementsAttr::get(type, builder.getFloatAttr(element, 0).getValue());
      parts.push_back(ConstantOp::create(builder, getLoc(), type, zero));
    }
    return ConcatOp::create(builder, getLoc(), getX().getType(), parts, getAxisAttr());
  });
}

Cotangents PadOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&] {
    return moveBack<SliceOp>(builder, getLoc(), dy[0], getX(), getLow(), tensorTypeOf(getX()).getShape());
  });
}

Cotangents GatherOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  RankedTensorType type = tensorTypeOf(getTable());
  return firstCotangent(
      needed, [&] { return GatherGradOp::create(builder, getLoc(), type, dy[0], getIndices(), type.getDimSize(0)); });
}

} // namespace mpc
