// Which operands, results and attributes of an operation follow the image layout, and how operations compute on
// permuted axes.
#pragma once

#include "compiler/dialect/operation_lists.h"

namespace mpc {

/// result axis i is operand axis Permutation[i].
inline constexpr int64_t ToChannelsLast[] = {0, 2, 3, 1};
inline constexpr int64_t ToChannelsFirst[] = {0, 3, 1, 2};

/// The images of an operation with a `data_format` that is still NCHW and rank 4; nullopt for every other operation.
std::optional<ImageValues> channelsFirstImages(mlir::Operation *Op);

/// Rewrites the axes in the attributes of an operation that movesAlongAxes(), on rank-4 tensors, to channels-last.
void makeAxesChannelsLast(mlir::Operation *Op);

/// Whether a reduction of a rank-4 operand may run on channels-last axes: its result keeps the order of its axes.
/// \p Axes receives the remapped axes.
bool reducesChannelsLast(mlir::Operation *Op, llvm::SmallVectorImpl<int64_t> &Axes);

llvm::SmallVector<int64_t> permuted(llvm::ArrayRef<int64_t> Extents, llvm::ArrayRef<int64_t> Permutation);
mlir::RankedTensorType permuted(mlir::Type Type, llvm::ArrayRef<int64_t> Permutation);

/// Whether the permutation moves only extents of 1: it is a reshape then, and free.
bool isFreePermutation(llvm::ArrayRef<int64_t> Extents, llvm::ArrayRef<int64_t> Permutation);

} // namespace mpc
