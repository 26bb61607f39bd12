// Shared by the files that say how operations are computed element by element.
#pragma once

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"
#include "compiler/element/element_context.h"
#include "compiler/element/number_functions.h"
#include "llvm/ADT/Twine.h"

namespace mpc {

using FusibleSpace = llvm::Expected<codegen::OperationSpace>;

/// "mpc.softmax: <Why>".
llvm::Error unfit(mlir::Operation *op, const llvm::Twine &why);

inline mlir::RankedTensorType tensorType(mlir::Value v) { return llvm::cast<mlir::RankedTensorType>(v.getType()); }

/// The length of rows along \p axis (from -rank), which must be the last axis of \p x but for extents of 1.
llvm::Expected<int64_t> lastAxisLength(mlir::Operation *op, mlir::Value x, int64_t axis);

/// The channels of \p x, which must lie in the last axis but for extents of 1: [N, C] or channels-last.
llvm::Expected<int64_t> lastAxisChannels(mlir::Operation *op, mlir::Value x, DataFormat dataFormat);

/// Hands operand \p index on, of whatever type, as result 0.
void handOnElement(codegen::ElementContext &context, mlir::Value operand, unsigned index);

/// Chooses between operands 1 and 2, both of \p chosen's type, by the truth value that is operand 0.
void chooseElement(codegen::ElementContext &context, mlir::Value chosen);

/// The divisor of the sum of \p count losses under `reduction`.
float lossDivisor(LossReduction reduction, int64_t count);

} // namespace mpc
