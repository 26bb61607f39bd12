// Derivatives of the derivatives of activation functions and other element-wise operations. p is the product of the
// cotangent c and of dy.
#include "compiler/dialect/gradient_vjp.h"

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
