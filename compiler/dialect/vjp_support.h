// Shared by the derivative rules.
#pragma once

#include "compiler/dialect/dialect.h"

#include <string>

namespace mpc {

/// One cotangent an operand, null where it is zero or not needed.
using Cotangents = llvm::FailureOr<llvm::SmallVector<mlir::Value>>;

/// The cotangents of an operation of one operand.
inline llvm::SmallVector<mlir::Value> single(mlir::Value cotangent) { return {cotangent}; }

mlir::RankedTensorType tensorTypeOf(mlir::Value v);

/// The type of \p like with another element type.
mlir::RankedTensorType withElementType(mlir::RankedTensorType like, mlir::Type element);

/// The element type of intermediate results that another operation rounds: f32 for low types, else \p element itself.
mlir::Type accumulatorType(mlir::Type element);

/// \p v in another element type; \p v itself if it has that type.
mlir::Value castTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value v, mlir::Type element);

/// Undoes broadcasting: sums \p v over the axes along which \p target was stretched, and returns a value of type
/// \p target. The sum is accumulated in f32 and rounded once.
mlir::Value sumTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value v, mlir::RankedTensorType target);

/// The type that the element-wise term of a cotangent needs. Where the shape of \p operand is \p full, it is that type
/// itself. Otherwise it has the accumulator's element type and shape \p full, since sumTo rounds it afterwards.
mlir::RankedTensorType termType(mlir::RankedTensorType operand, llvm::ArrayRef<int64_t> full);

/// The cotangents of an operation of which operand 0 alone has one. \p create makes it where it is needed.
Cotangents firstCotangent(llvm::ArrayRef<bool> needed, llvm::function_ref<mlir::Value()> create);

/// The cotangents that are results of the operation of \p create, in the operands' order. Where none is needed, it is
/// not created.
Cotangents resultCotangents(llvm::ArrayRef<bool> needed, llvm::function_ref<mlir::Operation *()> create);

/// The cotangent of \p operand, whose elements \p MovementOp moves back from \p dy; null for integers.
template <typename MovementOp, typename... Args>
mlir::Value moveBack(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value dy, mlir::Value operand,
                     const Args &...attributes) {
  mlir::RankedTensorType type = tensorTypeOf(operand);
  if (!llvm::isa<mlir::FloatType>(type.getElementType()))
    return nullptr;
  return MovementOp::create(builder, loc, type, castTo(builder, loc, dy, type.getElementType()), attributes...);
}

/// The cotangent of \p operand, of which \p TermOp computes the term for each element of \p y. Broadcasting is undone.
template <typename TermOp>
mlir::Value summedTerm(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value operand, mlir::Value y,
                       mlir::ValueRange termOperands) {
  mlir::RankedTensorType type = tensorTypeOf(operand), term = termType(type, tensorTypeOf(y).getShape());
  return sumTo(builder, loc, TermOp::create(builder, loc, mlir::TypeRange(term), termOperands), type);
}

/// The cotangents of `minimum` and `maximum`; \p GradientOp gives both terms before broadcasting is undone.
template <typename GradientOp, typename Op>
Cotangents extremumCotangents(Op forward, mlir::OpBuilder &builder, mlir::Value dy, llvm::ArrayRef<bool> needed) {
  llvm::SmallVector<mlir::Value> result(2);
  if (!needed[0] && !needed[1])
    return result;
  llvm::ArrayRef<int64_t> full = tensorTypeOf(forward.getY()).getShape();
  mlir::RankedTensorType typeA = tensorTypeOf(forward.getA()), typeB = tensorTypeOf(forward.getB());
  auto terms = GradientOp::create(builder, forward.getLoc(), termType(typeA, full), termType(typeB, full), dy,
                                  forward.getA(), forward.getB());
  if (needed[0])
    result[0] = sumTo(builder, forward.getLoc(), terms.getDa(), typeA);
  if (needed[1])
    result[1] = sumTo(builder, forward.getLoc(), terms.getDb(), typeB);
  return result;
}

/// The name of an operation in messages: "'mpc.relu' in 'lenet5/fc1'", or its name alone where it has no Cell path.
std::string describeWithCell(mlir::Operation *op);

/// The error for a loss that depends on a result of \p op which is saved for the derivative alone.
mlir::InFlightDiagnostic noDerivativeBySaved(mlir::Operation *op, llvm::StringRef result);

/// The error for a loss whose operand 1, its labels, needs a gradient.
mlir::InFlightDiagnostic noDerivativeByLabels(mlir::Operation *loss);

/// The error for a loss scale, operand 1 of \p op, that needs a gradient.
mlir::InFlightDiagnostic noDerivativeByScale(mlir::Operation *op);

/// The cotangents of a loss of logits and labels. \p GradientOp reads \p saved behind them.
template <typename GradientOp, typename LossOp, typename... Values>
Cotangents labelledLossCotangents(LossOp loss, mlir::OpBuilder &builder, mlir::Value dloss, llvm::ArrayRef<bool> needed,
                                  Values... saved) {
  if (needed[1])
    return noDerivativeByLabels(loss);
  return firstCotangent(needed, [&] {
    return GradientOp::create(builder, loss.getLoc(), loss.getLogits().getType(), dloss, loss.getLogits(),
                              loss.getLabels(), saved..., loss.getReduction());
  });
}

/// The cotangents of a normalisation of x with gamma and beta. \p rest is what \p GradientOp takes behind the mean.
template <typename GradientOp, typename NormOp, typename... Args>
Cotangents normCotangents(NormOp norm, mlir::OpBuilder &builder, mlir::Value dy, llvm::ArrayRef<bool> needed,
                          const Args &...rest) {
  return resultCotangents(needed, [&] {
    return GradientOp::create(builder, norm.getLoc(), norm.getX().getType(), norm.getGamma().getType(),
                              norm.getBeta().getType(), dy, norm.getX(), norm.getGamma(), norm.getMean(), rest...);
  });
}

/// Creates a product of the type of `like`, whose operands are transposed where the flags behind them say so.
using CreateProduct = llvm::function_ref<mlir::Value(mlir::Value like, mlir::Value left, bool transposeLeft,
                                                     mlir::Value right, bool transposeRight)>;

/// Sets the cotangents of a and b, the factors of a product whose result has the cotangent \p dz.
template <typename ProductOp>
void setFactorCotangents(ProductOp forward, mlir::Value dz, llvm::ArrayRef<bool> needed,
                         llvm::MutableArrayRef<mlir::Value> result, CreateProduct product) {
  mlir::Value a = forward.getA(), b = forward.getB();
  bool transposeA = forward.getTransposeA(), transposeB = forward.getTransposeB();
  // With A = op(a) and B = op(b): dA = dz B^T and dB = A^T dz; a transposed operand takes the transpose of the whole.
  if (needed[0])
    result[0] = transposeA ? product(a, b, transposeB, dz, true) : product(a, dz, false, b, !transposeB);
  if (needed[1])
    result[1] = transposeB ? product(b, dz, true, a, transposeA) : product(b, a, !transposeA, dz, false);
}

/// Creates a \p NewOp with the window, groups and layout of the convolution \p like. They stand behind \p leading.
template <typename NewOp, typename ConvolutionOp, typename... Args>
NewOp convolveAs(ConvolutionOp like, mlir::OpBuilder &builder, const Args &...leading) {
  return NewOp::create(builder, like.getLoc(), leading..., like.getStrides(), like.getDilations(), like.getPadMode(),
                       like.getPadding(), like.getGroups(), like.getDataFormat());
}

/// The cotangent of the weight of \p forward: \p image stands for conv2d's x, \p dy for the cotangent of its result.
template <typename ConvolutionOp>
mlir::Value weightCotangent(ConvolutionOp forward, mlir::OpBuilder &builder, mlir::Value image, mlir::Value dy) {
  mlir::RankedTensorType type = tensorTypeOf(forward.getWeight());
  return convolveAs<Conv2dGradWeightOp>(forward, builder, type, image, dy, type.getShape());
}

/// The cotangent of a per-channel bias, which is the sum over every other axis.
mlir::Value biasCotangent(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value dz, int64_t channelAxis,
                          mlir::Value bias);

/// A floating scalar constant.
mlir::Value scalarConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type element, double value);

/// A scalar constant of integers.
mlir::Value integerConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type element, int64_t value);

/// Whether each of the integers \p v is in [0, end).
mlir::Value isInRange(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value v, int64_t end);

/// A constant of type \p like whose elements are all \p number.
mlir::Value filledConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type like, double number);

/// \p v in another shape of as many elements; \p v itself if it has that shape.
mlir::Value reshapeTo(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value v, llvm::ArrayRef<int64_t> shape);

} // namespace mpc
