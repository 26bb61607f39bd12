// Derivatives of operations that move parts of tensors, look values up, and go along an axis.
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

// The rows of \p table at \p indices, in the shape of \p like; zeros where an index lies outside the table.
static Value rowsAt(OpBuilder &builder, Location loc, Value table, Value indices, Value like) {
  RankedTensorType type = tensorTypeOf(table);
  RankedTensorType rows = withElementType(tensorTypeOf(like), type.getElementType());
  // gather gives NaN for indices outside.
  Value gathered = GatherOp::create(builder, loc, rows, table, indices);
  Value inside = isInRange(builder, loc, indices, type.getDimSize(0));
  SmallVector<int64_t> shape(tensorTypeOf(indices).getShape());
  shape.append(type.getRank() - 1, 1);
  inside = reshapeTo(builder, loc, inside, shape);
  Value zero = scalarConstant(builder, loc, type.getElementType(), 0);
  return castTo(builder, loc, WhereOp::create(builder, loc, rows, inside, gathered, zero), elementOf(like));
}

Cotangents GatherGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&] { return rowsAt(builder, getLoc(), c[0], getIndices(), getDy()); });
}

Cotangents ScatterAddOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(3);
  if (needed[0])
    result[0] = castTo(builder, getLoc(), dy[0], elementOf(getX()));
  if (needed[2])
    result[2] = rowsAt(builder, getLoc(), dy[0], getIndices(), getUpdates());
  return result;
}

// The sum that element i is in has the cotangents of i and of all that come after it.
Cotangents CumsumOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&] {
    return CumsumOp::create(builder, getLoc(), getX().getType(), dy[0], getAxis(), getExclusive(), !getReverse());
  });
}

// Indices have no cotangent: one of the values is there.
template <typename Op>
static Cotangents orderCotangents(Op order, OpBuilder &builder, Value dy, ArrayRef<bool> needed) {
  RankedTensorType type = tensorTypeOf(order.getX());
  int64_t axis = int64_t(order.getAxis());
  int64_t extent = type.getDimSize(axis < 0 ? axis + type.getRank() : axis);
  return firstCotangent(needed, [&] {
    return TopKGradOp::create(builder, order.getLoc(), type, dy, order.getIndices(), extent, order.getAxis());
  });
}

Cotangents SortOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return orderCotangents(*this, builder, dy[0], needed);
}

Cotangents TopKOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return orderCotangents(*this, builder, dy[0], needed);
}

// The places of the elements of \p whole that \p indices name along an axis. A place is the number of elements in
// front.
static Value placesAlong(OpBuilder &builder, Location loc, Value indices, int64_t axis, RankedTensorType whole) {
  bool isLong = !llvm::isInt<32>(whole.getNumElements());
  Type element = isLong ? builder.getI64Type() : elementOf(indices);
  Value places = castTo(builder, loc, indices, element);
  auto type = cast<RankedTensorType>(places.getType());
  int64_t stride = 1;
  SmallVector<int64_t> strides(whole.getRank());
  for (int64_t i = whole.getRank() - 1; i >= 0; stride *= whole.getDimSize(i--))
    strides[i] = stride;
  if (strides[axis] != 1)
    places = IntMulOp::create(builder, loc, type, places, integerConstant(builder, loc, element, strides[axis]));
  for (int64_t i = 0; i < whole.getRank(); ++i) {
    if (i == axis || whole.getDimSize(i) == 1)
      continue;
    SmallVector<int64_t> shape(whole.getRank(), 1);
    shape[i] = whole.getDimSize(i);
    Value offsets =
        IotaOp::create(builder, loc, RankedTensorType::get(shape, element), shape, /*axis=*/i, /*start=*/0, strides[i]);
    places = IntAddOp::create(builder, loc, type, places, offsets);
  }
  return places;
}

// Each cotangent comes from the element that it went to.
Cotangents TopKGradOp::buildVjp(OpBuilder &builder, ValueRange ddx, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&] {
    RankedTensorType whole = tensorTypeOf(ddx[0]);
    int64_t axis = int64_t(getAxis()), count = whole.getNumElements();
    Value elements = ddx[0], places = getIndices();
    if (whole.getRank() > 1) {
      auto line = RankedTensorType::get({count}, whole.getElementType());
      elements = ReshapeOp::create(builder, getLoc(), line, elements, ArrayRef<int64_t>(count));
      places = placesAlong(builder, getLoc(), places, axis < 0 ? axis + whole.getRank() : axis, whole);
    }
    RankedTensorType gathered = withElementType(tensorTypeOf(getDy()), whole.getElementType());
    Value result = GatherOp::create(builder, getLoc(), gathered, elements, places);
    return castTo(builder, getLoc(), result, elementOf(getDy()));
  });
}

} // namespace mpc
