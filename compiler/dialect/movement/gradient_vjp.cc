// Derivatives of the derivatives of maxima, minima and products along axes.
#include "compiler/dialect/gradient_vjp.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

// Each element has a share of dy: elements that equal the maximum have equal ones, the others none. The cotangents of
// what has no share are not read: they may be infinite.
Cotangents ReduceMaxGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&]() -> Value {
    Location loc = getLoc();
    WideArithmetic wide(builder, loc, getX());
    Value ones = filledConstant(builder, loc, getDy().getType(), 1);
    Value shares = wide.of<ReduceMaxGradOp>(ones, getX(), getY(), getAxesAttr(), getKeepDimsAttr());
    Value zero = scalarConstant(builder, loc, elementOf(shares), 0);
    Value holds =
        GreaterOp::create(builder, loc, withElementType(tensorTypeOf(shares), builder.getI1Type()), shares, zero);
    Value parts = wide.of<WhereOp>(holds, wide.times(c[0], shares), zero);
    return ReduceSumOp::create(builder, loc, getDy().getType(), parts, getAxes(), getKeepDims());
  });
}

//===-- Products -------------------------------------------------------------------------------------------------===//

namespace {

/// Values of a product's elements, and other numbers beside them: what they change by, or their cotangents.
struct Pair {
  Value value, other;
};

/// The elements of a reduction as a matrix: a row for each result.
class ReducedRows {
public:
  ReducedRows(OpBuilder &builder, ReduceProdGradOp op)
      : builder(builder), loc(op.getLoc()), shape(tensorTypeOf(op.getX()).getShape()) {
    SmallVector<int64_t> reduced(op.getAxes());
    for (int64_t axis = 0; axis < int64_t(shape.size()); ++axis)
      if (op.getAxes().empty())
        reduced.push_back(axis);
      else if (!llvm::is_contained(op.getAxes(), axis))
        order.push_back(axis);
    llvm::sort(reduced);
    for (int64_t axis : reduced)
      columns *= shape[axis];
    order.append(reduced);
    rows = tensorTypeOf(op.getX()).getNumElements() / columns;
  }

  Value matrixOf(Value v) { return reshapeTo(builder, loc, transposed(v, order), {rows, columns}); }
  Value columnOf(Value perResult) { return reshapeTo(builder, loc, perResult, {rows, 1}); }
  /// A matrix in the shape of the operand.
  Value restored(Value matrix) {
    SmallVector<int64_t> moved, back(order.size());
    for (auto [place, axis] : llvm::enumerate(order)) {
      moved.push_back(shape[axis]);
      back[axis] = int64_t(place);
    }
    return transposed(reshapeTo(builder, loc, matrix, moved), back);
  }

private:
  Value transposed(Value v, ArrayRef<int64_t> permutation) {
    if (llvm::is_sorted(permutation))
      return v;
    RankedTensorType type = tensorTypeOf(v);
    SmallVector<int64_t> result;
    for (int64_t axis : permutation)
      result.push_back(type.getDimSize(axis));
    return TransposeOp::create(builder, loc, RankedTensorType::get(result, type.getElementType()), v, permutation);
  }

  OpBuilder &builder;
  Location loc;
  ArrayRef<int64_t> shape;
  SmallVector<int64_t> order; ///< the axes, those of the reduction last

public:
  int64_t rows = 1, columns = 1;
};

/// A tree whose nodes are products of two halves. It divides nothing: zeros are elements like others.
class ProductTree {
public:
  /// The leaves are the columns of two matrices: elements, and what they change by.
  ProductTree(OpBuilder &builder, Location loc, Pair leaves) : builder(builder), loc(loc), top(leaves) {
    while (columnsOf(top.value) > 1) {
      Halves of = halves(top);
      levels.push_back(of);
      WideArithmetic wide(builder, loc, of.left.value);
      Value change = wide.plus(wide.times(of.left.other, of.right.value), wide.times(of.left.value, of.right.other));
      top = {wide.times(of.left.value, of.right.value), change};
    }
  }

  /// What the products change by, a column.
  Value change() const { return top.other; }

  /// The cotangents of the elements, where \p ofChange is that of the change; null for one element a row.
  Value valueCotangents(Value ofChange) {
    Pair c{{}, ofChange};
    for (const Halves &of : llvm::reverse(levels)) {
      WideArithmetic wide(builder, loc, of.left.value);
      auto under = [&](const Pair &sibling) {
        Value byValue = wide.times(c.other, sibling.other);
        if (c.value)
          byValue = wide.plus(byValue, wide.times(c.value, sibling.value));
        return Pair{byValue, wide.times(c.other, sibling.value)};
      };
      Pair left = under(of.right), right = under(of.left);
      c = {joined(left.value, right.value, of.columns), joined(left.other, right.other, of.columns)};
    }
    return c.value;
  }

private:
  /// Halves of a level. The right one is padded where the number of columns is odd.
  struct Halves {
    Pair left, right;
    int64_t columns;
  };

  static int64_t columnsOf(Value matrix) { return tensorTypeOf(matrix).getDimSize(1); }
  Type sized(Value like, int64_t columns) {
    RankedTensorType type = tensorTypeOf(like);
    return RankedTensorType::get({type.getDimSize(0), columns}, type.getElementType());
  }
  Value cut(Value matrix, int64_t start, int64_t columns) {
    return SliceOp::create(builder, loc, sized(matrix, columns), matrix, ArrayRef<int64_t>{0, start},
                           ArrayRef<int64_t>{tensorTypeOf(matrix).getDimSize(0), columns});
  }
  Halves halves(Pair of) {
    int64_t columns = columnsOf(of.value), half = (columns + 1) / 2;
    auto right = [&](Value matrix, float neutral) -> Value {
      Value rest = cut(matrix, half, columns - half);
      if (columns == 2 * half)
        return rest;
      return PadOp::create(builder, loc, sized(matrix, half), rest, ArrayRef<int64_t>{0, 0}, ArrayRef<int64_t>{0, 1},
                           APFloat(neutral));
    };
    return {{cut(of.value, 0, half), cut(of.other, 0, half)}, {right(of.value, 1), right(of.other, 0)}, columns};
  }
  /// The inverse of `halves`, for cotangents.
  Value joined(Value left, Value right, int64_t columns) {
    int64_t half = columnsOf(left);
    if (columns < 2 * half)
      right = cut(right, 0, columns - half);
    return ConcatOp::create(builder, loc, sized(left, columns), ValueRange{left, right}, /*axis=*/1);
  }

  OpBuilder &builder;
  Location loc;
  Pair top;
  SmallVector<Halves> levels;
};

} // namespace

// The derivative of a product along the cotangent c, in a tree. By dy it is that derivative. By x it is the derivative
// of dy times it.
Cotangents ReduceProdGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (!needed[0] && !needed[1])
    return result;
  Location loc = getLoc();
  ReducedRows rows(builder, *this);
  auto wideMatrix = [&](Value v) { return rows.matrixOf(castTo(builder, loc, v, accumulatorType(elementOf(v)))); };
  ProductTree tree(builder, loc, {wideMatrix(getX()), wideMatrix(c[0])});
  RankedTensorType dy = tensorTypeOf(getDy());
  if (needed[0])
    result[0] = castTo(builder, loc, reshapeTo(builder, loc, tree.change(), dy.getShape()), dy.getElementType());
  if (needed[1] && rows.columns > 1) {
    Value wideDy = castTo(builder, loc, getDy(), accumulatorType(dy.getElementType()));
    Value byX = rows.restored(tree.valueCotangents(rows.columnOf(wideDy)));
    result[1] = castTo(builder, loc, byX, elementOf(getX()));
  }
  return result;
}

} // namespace mpc
