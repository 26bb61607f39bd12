#include "compiler/dialect/gradient_vjp.h"

using namespace mlir;

namespace mpc {

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

} // namespace mpc
