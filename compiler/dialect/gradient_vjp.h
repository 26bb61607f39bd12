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
  /// \p a times a number that f32 does not hold: it is the sum of two that f32 holds.
  mlir::Value timesNumber(mlir::Value a, double factor);
  mlir::Value plus(mlir::Value a, float term) { return of<AddScalarOp>(a, llvm::APFloat(term)); }
  mlir::Value plus(mlir::Value a, mlir::Value b) { return of<AddOp>(a, b); }
  mlir::Value minus(mlir::Value a, mlir::Value b) { return of<SubOp>(a, b); }
  mlir::Value over(mlir::Value a, mlir::Value b) { return of<DivOp>(a, b); }
  mlir::Value negated(mlir::Value a) { return of<NegOp>(a); }
  /// Another operation of the same shape.
  template <typename Op, typename... Args> mlir::Value of(const Args &...args) {
    return Op::create(builder, loc, type, args...);
  }
  /// \p a itself in the accumulator's type.
  mlir::Value widened(mlir::Value a);
  /// \p a divided by a count. A count below 2^24 is exact in f32.
  mlir::Value overCount(mlir::Value a, int64_t count);
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

/// The cotangents of the losses of elements in \p c dloss, where \p dloss is the cotangent of a loss of \p count ones.
mlir::Value ofElementLosses(WideArithmetic &wide, mlir::Value c, mlir::Value dloss, LossReduction reduction,
                            int64_t count);

/// The cotangent of dloss, which is operand 0 of the derivative \p op of a loss. \p c is that of its result.
mlir::Value lossCotangent(mlir::Operation *op, mlir::OpBuilder &builder, mlir::Value c);

/// What a cross-entropy of sparse or dense labels says of its logits, without what lies behind their classes.
struct ClassProbabilities {
  ClassProbabilities(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value logits, mlir::Value logSumExp,
                     int64_t classes);

  /// \p rows without what lies behind the classes, and such rows with zeros there.
  mlir::Value narrowed(mlir::Value rows) const;
  mlir::Value widened(mlir::Value rows) const;

  mlir::OpBuilder &builder;
  mlir::Location loc;
  int64_t columns, classes;
  mlir::Value probabilities; ///< exp(logits - log_sum_exp)
};

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
