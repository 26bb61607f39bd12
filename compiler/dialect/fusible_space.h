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
llvm::Error unfit(mlir::Operation *Op, const llvm::Twine &Why);

inline mlir::RankedTensorType tensorType(mlir::Value V) { return llvm::cast<mlir::RankedTensorType>(V.getType()); }

/// The length of rows along \p Axis (from -rank), which must be the last axis of \p X but for extents of 1.
llvm::Expected<int64_t> lastAxisLength(mlir::Operation *Op, mlir::Value X, int64_t Axis);

/// The channels of \p X, which must lie in the last axis but for extents of 1: [N, C] or channels-last.
llvm::Expected<int64_t> lastAxisChannels(mlir::Operation *Op, mlir::Value X, llvm::StringRef DataFormat);

/// The divisor of the sum of \p Count losses under `reduction`.
float lossDivisor(llvm::StringRef Reduction, int64_t Count);

} // namespace mpc
