// Which operands, results and attributes of an operation follow the image layout, and how operations compute on
// permuted axes.
#pragma once

#include "compiler/dialect/dialect.h"

namespace mpc {

/// result axis i is operand axis Permutation[i].
inline constexpr int64_t ToChannelsLast[] = {0, 2, 3, 1};
inline constexpr int64_t ToChannelsFirst[] = {0, 3, 1, 2};

/// Operands and results that hold images.
struct ImageValues {
  llvm::SmallVector<unsigned> Operands;
  llvm::SmallVector<unsigned> Results;
};

/// The images of an operation with a `data_format` that is still NCHW and rank 4; nullopt for every other operation.
std::optional<ImageValues> channelsFirstImages(mlir::Operation *Op);

/// Whether the operation computes each result element from the operand elements at the same (broadcast) position, so
/// that it commutes with a permutation of axes. Dropout is none: its mask counts elements.
bool isElementwise(mlir::Operation *Op);

/// Whether the operation moves elements along axes that its attributes name: on a permuted image it takes permuted
/// ones.
bool movesAlongAxes(mlir::Operation *Op);
/// Rewrites the axes in the attributes of such an operation on rank-4 tensors to channels-last.
void makeAxesChannelsLast(mlir::Operation *Op);

/// Whether a reduction of a rank-4 operand may run on channels-last axes: its result keeps the order of its axes.
/// \p Axes receives the remapped axes.
bool reducesChannelsLast(mlir::Operation *Op, llvm::SmallVectorImpl<int64_t> &Axes);

llvm::SmallVector<int64_t> permuted(llvm::ArrayRef<int64_t> Extents, llvm::ArrayRef<int64_t> Permutation);
mlir::RankedTensorType permuted(mlir::Type Type, llvm::ArrayRef<int64_t> Permutation);

/// Whether the permutation moves only extents of 1: it is a reshape then, and free.
bool isFreePermutation(llvm::ArrayRef<int64_t> Extents, llvm::ArrayRef<int64_t> Permutation);

} // namespace mpc
