#include "compiler/dialect/gradient_vjp.h"

using namespace mlir;

namespace mpc {

Value WideArithmetic::timesNumber(Value a, double factor) {
  float rounded = float(factor), rest = float(factor - rounded);
  Value product = times(a, rounded);
  return plus(product, times(a, rest));
}

Value WideArithmetic::widened(Value a) { return castTo(builder, loc, a, type.getElementType()); }

Value WideArithmetic::overCount(Value a, int64_t count) {
  return over(a, scalarConstant(builder, loc, type.getElementType(), double(count)));
}

Value WideArithmetic::sumAlong(Value a, int64_t axis) {
  SmallVector<int64_t> shape(type.getShape());
  int64_t place = axis < 0 ? axis + type.getRank() : axis;
  shape[place] = 1;
  return ReduceSumOp::create(builder, loc, RankedTensorType::get(shape, type.getElementType()), a,
                             ArrayRef<int64_t>{place}, /*keep_dims=*/true);
}

Value againOf(Operation *op, OpBuilder &builder, Value c) {
  Operation *again = builder.clone(*op);
  again->setOperand(0, c);
  again->getResult(0).setType(op->getOperand(0).getType());
  return again->getResult(0);
}

Cotangents gradientCotangents(Operation *op, OpBuilder &builder, Value c, ArrayRef<bool> needed,
                              llvm::function_ref<Value(WideArithmetic &, Value)> bySecond) {
  SmallVector<Value> result(2);
  if (needed[0])
    result[0] = againOf(op, builder, c);
  if (!needed[1] || !bySecond)
    return result;
  Value second = op->getOperand(1);
  WideArithmetic wide(builder, op->getLoc(), second);
  if (Value cotangent = bySecond(wide, wide.times(c, op->getOperand(0))))
    result[1] = castTo(builder, op->getLoc(), cotangent, tensorTypeOf(second).getElementType());
  return result;
}

Value ofElementLosses(WideArithmetic &wide, Value c, Value dloss, LossReduction reduction, int64_t count) {
  Value product = wide.times(c, dloss);
  return reduction == LossReduction::kMean ? wide.overCount(product, count) : product;
}

ClassProbabilities::ClassProbabilities(OpBuilder &builder, Location loc, Value logits, Value logSumExp, int64_t classes)
    : builder(builder), loc(loc), columns(tensorTypeOf(logits).getDimSize(1)), classes(classes) {
  Value among = narrowed(logits);
  WideArithmetic wide(builder, loc, among);
  Value perRow = reshapeTo(builder, loc, logSumExp, {tensorTypeOf(logits).getDimSize(0), 1});
  probabilities = wide.of<ExpOp>(wide.minus(among, perRow));
}

Value ClassProbabilities::narrowed(Value rows) const {
  if (classes == columns)
    return rows;
  RankedTensorType type = tensorTypeOf(rows);
  SmallVector<int64_t> sizes{type.getDimSize(0), classes};
  return SliceOp::create(builder, loc, RankedTensorType::get(sizes, type.getElementType()), rows,
                         ArrayRef<int64_t>{0, 0}, sizes);
}

Value ClassProbabilities::widened(Value rows) const {
  if (classes == columns)
    return rows;
  RankedTensorType type = tensorTypeOf(rows);
  return PadOp::create(builder, loc, RankedTensorType::get({type.getDimSize(0), columns}, type.getElementType()), rows,
                       ArrayRef<int64_t>{0, 0}, ArrayRef<int64_t>{0, columns - classes}, APFloat(0.0f));
}

// The derivative is linear in dloss.
Value lossCotangent(Operation *op, OpBuilder &builder, Value c) {
  Location loc = op->getLoc();
  RankedTensorType dloss = tensorTypeOf(op->getOperand(0)), full = tensorTypeOf(c);
  WideArithmetic wide(builder, loc, c);
  Value one = filledConstant(builder, loc, dloss, 1);
  Operation *again = builder.clone(*op);
  again->setOperand(0, one);
  Value product = wide.times(c, again->getResult(0));
  SmallVector<int64_t> axes;
  for (int64_t axis = dloss.getRank(); axis < full.getRank(); ++axis)
    axes.push_back(axis);
  if (axes.empty())
    return castTo(builder, loc, product, dloss.getElementType());
  return ReduceSumOp::create(builder, loc, dloss, product, axes, /*keep_dims=*/false);
}

} // namespace mpc
