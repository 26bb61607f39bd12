// Shared by the derivative rules of gradient operations. A gradient operation is linear in its cotangent dy: by dy its
// derivative is the operation again, of the cotangent c of its result.
#pragma once

#include "compiler/dialect/vjp_support.h"

namespace mpc {

/// Element-wise arithmetic whose results have the accumulator's type. The cotangent rounds once.
class WideArithmetic {
public:
  WideArithmetic(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value like)
      : builder(builder), loc(loc),
        type(withElementType(tensorTypeOf(like), accumulatorType(tensorTypeOf(like).getElementType()))) {}

  mlir::Value times(mlir::Value a, mlir::Value b) { return of<MulOp>(a, b); }
  mlir::Value times(mlir::Value a, float factor) { return of<MulScalarOp>(a, llvm::APFloat(factor)); }
  mlir::Value plus(mlir::Value a, float term) { return of<AddScalarOp>(a, llvm::APFloat(term)); }
  mlir::Value minus(mlir::Value a, mlir::Value b) { return of<SubOp>(a, b); }
  mlir::Value over(mlir::Value a, mlir::Value b) { return of<DivOp>(a, b); }
  mlir::Value negated(mlir::Value a) { return of<NegOp>(a); }
  /// Another operation of the same shape.
  template <typename Op, typename... Args> mlir::Value of(const Args &...args) {
    return Op::create(builder, loc, type, args...);
  }
  /// The sum along \p axis, which stays with extent 1.
  mlir::Value sumAlong(mlir::Value a, int64_t axis);

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::RankedTensorType type;
};

/// The operation \p op of \p c in the place of dy, which is operand 0: the cotangent of dy.
mlir::Value againOf(mlir::Operation *op, mlir::OpBuilder &builder, mlir::Value c);

/// The cotangents of a gradient operation of dy and of a value, all of one shape. \p bySecond makes that of the value
/// from the product of c and dy; null where it is zero.
Cotangents gradientCotangents(mlir::Operation *op, mlir::OpBuilder &builder, mlir::Value c, llvm::ArrayRef<bool> needed,
                              llvm::function_ref<mlir::Value(WideArithmetic &, mlir::Value)> bySecond = nullptr);

/// The cotangents of the derivative \p op of a maximum or minimum: by dy it is the operation again, of each cotangent.
template <typename GradientOp>
Cotangents extremumGradCotangents(GradientOp op, mlir::OpBuilder &builder, mlir::ValueRange c,
                                  llvm::ArrayRef<bool> needed) {
  llvm::SmallVector<mlir::Value> result(3), terms;
  if (!needed[0])
    return result;
  mlir::Type type = op.getDy().getType();
  auto again = [&](mlir::Value of) {
    return GradientOp::create(builder, op.getLoc(), type, type, of, op.getA(), op.getB());
  };
  if (c[0])
    terms.push_back(again(c[0]).getDa());
  if (c[1])
    terms.push_back(again(c[1]).getDb());
  result[0] = terms.size() == 1 ? terms[0] : SumNOp::create(builder, op.getLoc(), type, terms).getY();
  return result;
}

} // namespace mpc
