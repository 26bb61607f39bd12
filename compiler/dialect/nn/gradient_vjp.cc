// Derivatives of the derivatives of convolutions, mean pooling and softmax.
#include "compiler/dialect/gradient_vjp.h"

using namespace mlir;

namespace mpc {

// Derivatives of a convolution are linear in both operands, and each is the convolution or a derivative of it.
Cotangents Conv2dGradInputOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (needed[0])
    result[0] = convolveAs<Conv2dOp>(*this, builder, getDy().getType(), c[0], getWeight(), /*bias=*/Value());
  if (needed[1])
    result[1] = weightCotangent(*this, builder, c[0], getDy());
  return result;
}

Cotangents Conv2dGradWeightOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (needed[0])
    result[0] =
        convolveAs<Conv2dGradInputOp>(*this, builder, getX().getType(), getDy(), c[0], tensorTypeOf(getX()).getShape());
  if (needed[1])
    result[1] = convolveAs<Conv2dOp>(*this, builder, getDy().getType(), getX(), c[0], /*bias=*/Value());
  return result;
}

Cotangents AvgPool2dGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return firstCotangent(needed, [&] {
    return AvgPool2dOp::create(builder, getLoc(), getDy().getType(), c[0], getKernelSize(), getStrides(), getPadMode(),
                               getPadding(), getCountIncludePad(), getDataFormat());
  });
}

// Of y (dy - sum(dy y)): by dy it is the operation again, whose matrix is symmetric. By y it is
// c (dy - sum(dy y)) - dy sum(c y).
Cotangents SoftmaxGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (needed[0])
    result[0] = againOf(*this, builder, c[0]);
  if (needed[1]) {
    WideArithmetic wide(builder, getLoc(), getY());
    auto sum = [&](Value factor) { return wide.sumAlong(wide.times(factor, getY()), getAxis()); };
    Value direct = wide.times(c[0], wide.minus(getDy(), sum(getDy())));
    Value byY = wide.minus(direct, wide.times(getDy(), sum(c[0])));
    result[1] = castTo(builder, getLoc(), byY, elementOf(getY()));
  }
  return result;
}

// Of dy - exp(y) sum(dy): by dy it is c - sum(c exp(y)), by y it is -c exp(y) sum(dy).
Cotangents LogSoftmaxGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(2);
  if (!needed[0] && !needed[1])
    return result;
  WideArithmetic wide(builder, getLoc(), getY());
  Value weighted = wide.times(c[0], wide.of<ExpOp>(getY()));
  if (needed[0])
    result[0] = castTo(builder, getLoc(), wide.minus(c[0], wide.sumAlong(weighted, getAxis())), elementOf(getDy()));
  if (needed[1]) {
    Value byY = wide.negated(wide.times(weighted, wide.sumAlong(getDy(), getAxis())));
    result[1] = castTo(builder, getLoc(), byY, elementOf(getY()));
  }
  return result;
}

} // namespace mpc
