// Says which operations follow the image layout, and which reductions compute on permuted axes.
#pragma once

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/tensor_values.h"

namespace mpc {

/// The permutations of permuted() between the two data formats.
inline constexpr int64_t toChannelsLast[] = {0, 2, 3, 1};
inline constexpr int64_t toChannelsFirst[] = {0, 3, 1, 2};

/// \p op where its `data_format` is still NCHW and its images have rank 4; null for every other operation.
ImageOpInterface channelsFirstImages(mlir::Operation *op);

/// Whether a reduction of a rank-4 operand may run on channels-last axes: its result keeps the order of its axes.
/// \p axes receives the remapped axes.
bool reducesChannelsLast(ReductionOpInterface op, llvm::SmallVectorImpl<int64_t> &axes);

/// Whether the permutation moves only extents of 1: it is a reshape then, and free.
bool isFreePermutation(llvm::ArrayRef<int64_t> extents, llvm::ArrayRef<int64_t> permutation);

} // namespace mpc
