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

/// What messages call an operation: "'mpc.relu' in 'lenet5/fc1'", or its name alone where it has no Cell path.
std::string describeWithCell(mlir::Operation *Op);

/// A floating scalar constant.
mlir::Value scalarConstant(mlir::OpBuilder &Builder, mlir::Location Loc, mlir::Type Element, double Value);

} // namespace mpc
