// Derivatives of activation functions and other element-wise operations.
#include "compiler/dialect/vjp_support.h"

using namespace mlir;

namespace mpc {

// A step function: zero where it has a derivative.
Cotangents FloorOp::buildVjp(OpBuilder &, ValueRange, ArrayRef<bool>) { return single(nullptr); }

Cotangents PreluOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return resultCotangents(needed, [&] {
    return PreluGradOp::create(builder, getLoc(), getX().getType(), getAlpha().getType(), dy[0], getX(), getAlpha(),
                               getDataFormatAttr());
  });
}

Cotangents MinimumOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  return extremumCotangents<MinimumGradOp>(*this, builder, dy[0], needed);
}

Cotangents WhereOp::buildVjp(OpBuilder &builder, ValueRange dy, ArrayRef<bool> needed) {
  SmallVector<Value> result(3);
  for (unsigned index : {1u, 2u}) {
    if (!needed[index])
      continue;
    Value zero = scalarConstant(builder, getLoc(), tensorTypeOf(dy[0]).getElementType(), 0);
    Value chosen = index == 1 ? dy[0] : zero, other = index == 1 ? zero : dy[0];
    result[index] = summedTerm<WhereOp>(builder, getLoc(), getOperand(index), getY(), {getCondition(), chosen, other});
  }
  return result;
}

} // namespace mpc
