// Derivatives of the derivatives of element-wise operations that read the forward result y, of quotients and maxima. p
// is the product of the cotangent c and of dy.
#include "compiler/dialect/gradient_vjp.h"

using namespace mlir;

namespace mpc {

Cotangents ReluGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed);
}

Cotangents MaximumGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return extremumGradCotangents(*this, builder, c, needed);
}

// p (1 - 2 y).
Cotangents SigmoidGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed, [&](WideArithmetic &wide, Value p) {
    return wide.times(p, wide.plus(wide.times(getY(), -2), 1));
  });
}

// -2 p y.
Cotangents TanhGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed,
                            [&](WideArithmetic &wide, Value p) { return wide.times(wide.times(p, getY()), -2); });
}

// -p / (2 y^2).
Cotangents SqrtGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed, [&](WideArithmetic &wide, Value p) {
    return wide.negated(wide.over(wide.of<SqrtGradOp>(p, getY()), getY()));
  });
}

// Of -dy y / b: by y it is -p / b, by b it is p y / b^2.
Cotangents DivGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(3);
  if (needed[0])
    result[0] = againOf(*this, builder, c[0]);
  if (!needed[1] && !needed[2])
    return result;
  WideArithmetic wide(builder, getLoc(), getY());
  Value p = wide.times(c[0], getDy());
  if (needed[1])
    result[1] = castTo(builder, getLoc(), wide.negated(wide.over(p, getB())), elementOf(getY()));
  if (needed[2]) {
    Value byDivisor = wide.negated(wide.over(wide.of<DivGradOp>(p, getY(), getB()), getB()));
    result[2] = sumTo(builder, getLoc(), byDivisor, tensorTypeOf(getB()));
  }
  return result;
}

} // namespace mpc
