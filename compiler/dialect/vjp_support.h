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

/// The type that the element-wise term of a cotangent needs: \p Operand itself where its shape is \p Full, else the
/// accumulator's element type in shape \p Full, since sumTo rounds it afterwards.
mlir::RankedTensorType termType(mlir::RankedTensorType Operand, llvm::ArrayRef<int64_t> Full);

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

/// What messages call an operation: "'mpc.relu' in 'lenet5/fc1'", or its name alone where it has no Cell path.
std::string describeWithCell(mlir::Operation *Op);

/// The error for a loss that depends on a result of \p Op which is saved for the derivative alone.
mlir::InFlightDiagnostic noDerivativeBySaved(mlir::Operation *Op, llvm::StringRef Result);

/// The error for a loss whose operand 1, its labels, needs a gradient.
mlir::InFlightDiagnostic noDerivativeByLabels(mlir::Operation *Loss);

/// A floating scalar constant.
mlir::Value scalarConstant(mlir::OpBuilder &Builder, mlir::Location Loc, mlir::Type Element, double Value);

} // namespace mpc
