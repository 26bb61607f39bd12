// Shared by the derivative rules.
#pragma once

#include "compiler/dialect/dialect.h"

#include <string>

namespace mpc {

/// One cotangent an operand, null where it is zero or not needed.
using Cotangents = llvm::FailureOr<llvm::SmallVector<mlir::Value>>;

mlir::RankedTensorType tensorTypeOf(mlir::Value V);

/// The type of \p Like with another element type.
mlir::RankedTensorType withElementType(mlir::RankedTensorType Like, mlir::Type Element);

/// The element type of intermediate results that another operation rounds: f32 for low types, else \p Element itself.
mlir::Type accumulatorType(mlir::Type Element);

/// \p V in another element type; \p V itself if it has that type.
mlir::Value castTo(mlir::OpBuilder &Builder, mlir::Location Loc, mlir::Value V, mlir::Type Element);

/// Undoes broadcasting: sums \p V over the axes along which \p Target was stretched, and returns a value of type
/// \p Target. The sum is accumulated in f32 and rounded once.
mlir::Value sumTo(mlir::OpBuilder &Builder, mlir::Location Loc, mlir::Value V, mlir::RankedTensorType Target);

/// The type that the element-wise term of a cotangent needs. Where the shape of \p Operand is \p Full, it is that type
/// itself. Otherwise it has the accumulator's element type and shape \p Full, since sumTo rounds it afterwards.
mlir::RankedTensorType termType(mlir::RankedTensorType Operand, llvm::ArrayRef<int64_t> Full);

/// The cotangents of an operation of which operand 0 alone has one. \p Create makes it where it is needed.
Cotangents firstCotangent(llvm::ArrayRef<bool> Needed, llvm::function_ref<mlir::Value()> Create);

/// The cotangents that are results of the operation of \p Create, in the operands' order. Where none is needed, it is
/// not created.
Cotangents resultCotangents(llvm::ArrayRef<bool> Needed, llvm::function_ref<mlir::Operation *()> Create);

/// The cotangent of \p Operand, whose elements \p MovementOp moves back from \p Dy; null for integers.
template <typename MovementOp, typename... Args>
mlir::Value moveBack(mlir::OpBuilder &Builder, mlir::Location Loc, mlir::Value Dy, mlir::Value Operand,
                     const Args &...Attributes) {
  mlir::RankedTensorType Type = tensorTypeOf(Operand);
  if (!llvm::isa<mlir::FloatType>(Type.getElementType()))
    return nullptr;
  return MovementOp::create(Builder, Loc, Type, castTo(Builder, Loc, Dy, Type.getElementType()), Attributes...);
}

/// The cotangent of \p Operand, of which \p TermOp computes the term for each element of \p Y. Broadcasting is undone.
template <typename TermOp>
mlir::Value summedTerm(mlir::OpBuilder &Builder, mlir::Location Loc, mlir::Value Operand, mlir::Value Y,
                       mlir::ValueRange TermOperands) {
  mlir::RankedTensorType Type = tensorTypeOf(Operand), Term = termType(Type, tensorTypeOf(Y).getShape());
  return sumTo(Builder, Loc, TermOp::create(Builder, Loc, mlir::TypeRange(Term), TermOperands), Type);
}

/// The cotangents of `minimum` and `maximum`; \p GradientOp gives both terms before broadcasting is undone.
template <typename GradientOp, typename Op>
Cotangents extremumCotangents(Op Forward, mlir::OpBuilder &Builder, mlir::Value Dy, llvm::ArrayRef<bool> Needed) {
  llvm::SmallVector<mlir::Value> Result(2);
  if (!Needed[0] && !Needed[1])
    return Result;
  llvm::ArrayRef<int64_t> Full = tensorTypeOf(Forward.getY()).getShape();
  mlir::RankedTensorType TypeA = tensorTypeOf(Forward.getA()), TypeB = tensorTypeOf(Forward.getB());
  auto Terms = GradientOp::create(Builder, Forward.getLoc(), termType(TypeA, Full), termType(TypeB, Full), Dy,
                                  Forward.getA(), Forward.getB());
  if (Needed[0])
    Result[0] = sumTo(Builder, Forward.getLoc(), Terms.getDa(), TypeA);
  if (Needed[1])
    Result[1] = sumTo(Builder, Forward.getLoc(), Terms.getDb(), TypeB);
  return Result;
}

/// The name of an operation in messages: "'mpc.relu' in 'lenet5/fc1'", or its name alone where it has no Cell path.
std::string describeWithCell(mlir::Operation *Op);

/// The error for a loss that depends on a result of \p Op which is saved for the derivative alone.
mlir::InFlightDiagnostic noDerivativeBySaved(mlir::Operation *Op, llvm::StringRef Result);

/// The error for a loss whose operand 1, its labels, needs a gradient.
mlir::InFlightDiagnostic noDerivativeByLabels(mlir::Operation *Loss);

/// The cotangents of a loss of logits and labels. \p GradientOp reads \p Saved behind them.
template <typename GradientOp, typename LossOp, typename... Values>
Cotangents labelledLossCotangents(LossOp Loss, mlir::OpBuilder &Builder, mlir::Value Dloss, llvm::ArrayRef<bool> Needed,
                                  Values... Saved) {
  if (Needed[1])
    return noDerivativeByLabels(Loss);
  return firstCotangent(Needed, [&] {
    return GradientOp::create(Builder, Loss.getLoc(), Loss.getLogits().getType(), Dloss, Loss.getLogits(),
                              Loss.getLabels(), Saved..., Loss.getReduction());
  });
}

/// The cotangents of a normalisation of x with gamma and beta. \p Rest is what \p GradientOp takes behind the mean.
template <typename GradientOp, typename NormOp, typename... Args>
Cotangents normCotangents(NormOp Norm, mlir::OpBuilder &Builder, mlir::Value Dy, llvm::ArrayRef<bool> Needed,
                          const Args &...Rest) {
  return resultCotangents(Needed, [&] {
    return GradientOp::create(Builder, Norm.getLoc(), Norm.getX().getType(), Norm.getGamma().getType(),
                              Norm.getBeta().getType(), Dy, Norm.getX(), Norm.getGamma(), Norm.getMean(), Rest...);
  });
}

/// Creates a product of the type of `Like`, whose operands are transposed where the flags behind them say so.
using CreateProduct = llvm::function_ref<mlir::Value(mlir::Value Like, mlir::Value Left, bool TransposeLeft,
                                                     mlir::Value Right, bool TransposeRight)>;

/// Sets the cotangents of a and b, the factors of a product whose result has the cotangent \p Dz.
template <typename ProductOp>
void setFactorCotangents(ProductOp Forward, mlir::Value Dz, llvm::ArrayRef<bool> Needed,
                         llvm::MutableArrayRef<mlir::Value> Result, CreateProduct Product) {
  mlir::Value A = Forward.getA(), B = Forward.getB();
  bool TransposeA = Forward.getTransposeA(), TransposeB = Forward.getTransposeB();
  // With A = op(a) and B = op(b): dA = dz B^T and dB = A^T dz; a transposed operand takes the transpose of the whole.
  if (Needed[0])
    Result[0] = TransposeA ? Product(A, B, TransposeB, Dz, true) : Product(A, Dz, false, B, !TransposeB);
  if (Needed[1])
    Result[1] = TransposeB ? Product(B, Dz, true, A, TransposeA) : Product(B, A, !TransposeA, Dz, false);
}

/// Creates a \p NewOp with the window, groups and layout of the convolution \p Like. They stand behind \p Leading.
template <typename NewOp, typename ConvolutionOp, typename... Args>
NewOp convolveAs(ConvolutionOp Like, mlir::OpBuilder &Builder, const Args &...Leading) {
  return NewOp::create(Builder, Like.getLoc(), Leading..., Like.getStrides(), Like.getDilations(), Like.getPadMode(),
                       Like.getPadding(), Like.getGroups(), Like.getDataFormat());
}

/// The cotangent of the weight of \p Forward: \p Image stands for conv2d's x, \p Dy for the cotangent of its result.
template <typename ConvolutionOp>
mlir::Value weightCotangent(ConvolutionOp Forward, mlir::OpBuilder &Builder, mlir::Value Image, mlir::Value Dy) {
  mlir::RankedTensorType Type = tensorTypeOf(Forward.getWeight());
  return convolveAs<Conv2dGradWeightOp>(Forward, Builder, Type, Image, Dy, Type.getShape());
}

/// The cotangent of a per-channel bias, which is the sum over every other axis.
mlir::Value biasCotangent(mlir::OpBuilder &Builder, mlir::Location Loc, mlir::Value Dz, int64_t ChannelAxis,
                          mlir::Value Bias);

/// A floating scalar constant.
mlir::Value scalarConstant(mlir::OpBuilder &Builder, mlir::Location Loc, mlir::Type Element, double Value);

} // namespace mpc
