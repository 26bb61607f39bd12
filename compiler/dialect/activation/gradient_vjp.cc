// Derivatives of the derivatives of activation functions and other element-wise operations. p is the product of the
// cotangent c and of dy.
#include "compiler/dialect/gradient_vjp.h"
#include "compiler/dialect/tensor_values.h"
#include "kernels/window.h"

#include <cmath>

using namespace mlir;

namespace mpc {

// Straight lines between kinks.
Cotangents AbsGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed);
}

Cotangents LeakyReluGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed);
}

Cotangents ClampGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed);
}

Cotangents MinimumGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return extremumGradCotangents(*this, builder, c, needed);
}

Cotangents SquareGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed,
                            [](WideArithmetic &wide, Value p) { return wide.times(p, 2); });
}

// -p / (1 + x)^2.
Cotangents Log1pGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed, [&](WideArithmetic &wide, Value p) {
    Value once = wide.of<Log1pGradOp>(p, getX());
    return wide.negated(wide.of<Log1pGradOp>(once, getX()));
  });
}

Cotangents SinGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed,
                            [&](WideArithmetic &wide, Value p) { return wide.of<CosGradOp>(p, getX()); });
}

Cotangents CosGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed,
                            [&](WideArithmetic &wide, Value p) { return wide.negated(wide.of<SinGradOp>(p, getX())); });
}

// p s (1 - s) (2 + x (1 - 2 s)), where s is the sigmoid of x.
Cotangents SiluGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed, [&](WideArithmetic &wide, Value p) {
    Value s = wide.of<SigmoidOp>(getX());
    Value tilt = wide.times(getX(), wide.plus(wide.times(s, -2), 1));
    return wide.times(wide.of<SigmoidGradOp>(p, s), wide.plus(tilt, 2));
  });
}

// p / 3 between -3 and 3.
Cotangents HardSwishGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed, [&](WideArithmetic &wide, Value p) {
    Value three = scalarConstant(builder, getLoc(), tensorTypeOf(p).getElementType(), 3);
    return wide.of<ClampGradOp>(wide.over(p, three), getX(), llvm::APFloat(-3.0f), llvm::APFloat(3.0f));
  });
}

// -2 x times the derivative.
Cotangents ErfGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed, [&](WideArithmetic &wide, Value p) {
    return wide.times(wide.times(wide.of<ErfGradOp>(p, getX()), getX()), -2);
  });
}

// p f (2 - x^2), where f is the normal density of x.
static Value exactGeluTwice(WideArithmetic &wide, Value p, Value x) {
  Value square = wide.of<SquareOp>(x);
  Value bell = wide.of<ExpOp>(wide.times(square, -0.5f));
  Value tilt = wide.plus(wide.times(square, -1), 2);
  return wide.timesNumber(wide.times(p, wide.times(bell, tilt)), 0.5 * M_SQRT1_2 * M_2_SQRTPI);
}

// Let k = 0.044715 x^2 and v = a x (1 + k). Let s and r be the sigmoids of v and of -v: 1 - s would cancel.
//   p s r a (2 + 12 k + a x (1 + 3 k)^2 (r - s))
static Value tanhGeluTwice(WideArithmetic &wide, Value p, Value x) {
  constexpr double a = 2 * M_SQRT1_2 * M_2_SQRTPI;
  Value k = wide.timesNumber(wide.of<SquareOp>(x), 0.044715);
  Value v = wide.timesNumber(wide.times(x, wide.plus(k, 1)), a);
  Value s = wide.of<SigmoidOp>(v), r = wide.of<SigmoidOp>(wide.negated(v));
  Value slope = wide.plus(wide.times(k, 3), 1);
  Value bend = wide.times(x, wide.times(slope, slope));
  bend = wide.timesNumber(wide.times(bend, wide.minus(r, s)), a);
  Value tilt = wide.plus(wide.plus(bend, wide.times(k, 12)), 2);
  return wide.timesNumber(wide.times(p, wide.times(wide.times(s, r), tilt)), a);
}

// Both second derivatives are 0 in f32 beyond 16.
Cotangents GeluGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  return gradientCotangents(*this, builder, c[0], needed, [&](WideArithmetic &wide, Value p) {
    Value x = wide.of<ClampOp>(wide.widened(getX()), APFloat(-16.0f), APFloat(16.0f));
    return getApproximate() == Approximation::kTanh ? tanhGeluTwice(wide, p, x) : exactGeluTwice(wide, p, x);
  });
}

// The slopes \p v of channels in a shape that broadcasts over x.
static Value overChannels(PreluGradOp op, OpBuilder &builder, Value v) {
  RankedTensorType x = tensorTypeOf(op.getX());
  SmallVector<int64_t> shape(x.getRank(), 1);
  int64_t slopes = tensorTypeOf(v).getDimSize(0);
  // The channel is axis 1 of images too, and of what has another rank than theirs.
  if (slopes > 1)
    shape[x.getRank() == 4 ? AxesOf(op.getDataFormat()).channel : 1] = slopes;
  return reshapeTo(builder, op.getLoc(), v, shape);
}

// With a and b the cotangents of dx and dalpha: by dy it is a where x > 0, else a alpha + b x. By x it is b dy and by
// alpha the sum of a dy, both where x is not above 0. A NaN counts as not above.
Cotangents PreluGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  SmallVector<Value> result(3);
  Location loc = getLoc();
  WideArithmetic wide(builder, loc, getX());
  Value a = c[0], b = c[1] ? overChannels(*this, builder, c[1]) : Value();
  Value zero = scalarConstant(builder, loc, accumulatorType(elementOf(getX())), 0);
  Value above = GreaterOp::create(builder, loc, withElementType(tensorTypeOf(getX()), builder.getI1Type()), getX(),
                                  scalarConstant(builder, loc, elementOf(getX()), 0));
  auto notAbove = [&](Value v) { return wide.of<WhereOp>(above, zero, v); };
  if (needed[0]) {
    Value below = a ? wide.times(a, overChannels(*this, builder, getAlpha())) : Value();
    if (b)
      below = below ? wide.plus(below, wide.times(getX(), b)) : wide.times(getX(), b);
    result[0] = castTo(builder, loc, wide.of<WhereOp>(above, a ? a : zero, below), elementOf(getDy()));
  }
  if (needed[1] && b)
    result[1] = castTo(builder, loc, notAbove(wide.times(getDy(), b)), elementOf(getX()));
  if (needed[2] && a) {
    RankedTensorType alpha = tensorTypeOf(getAlpha());
    RankedTensorType channels =
        withElementType(tensorTypeOf(overChannels(*this, builder, getAlpha())), alpha.getElementType());
    Value sum = sumTo(builder, loc, notAbove(wide.times(getDy(), a)), channels);
    result[2] = reshapeTo(builder, loc, sum, alpha.getShape());
  }
  return result;
}

// p n (n - 1) x^(n - 2).
Cotangents PowGradOp::buildVjp(OpBuilder &builder, ValueRange c, ArrayRef<bool> needed) {
  float exponent = getExponent().convertToFloat();
  return gradientCotangents(*this, builder, c[0], needed, [&](WideArithmetic &wide, Value p) {
    if (exponent == 0 || exponent == 1)
      return Value();
    return wide.times(wide.of<PowGradOp>(p, getX(), llvm::APFloat(exponent - 1)), exponent);
  });
}

} // namespace mpc
