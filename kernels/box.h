// Boxes of elements that lie in two row-major tensors: the geometry of concat, split and slice.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/tensor_spec.h"

namespace mpc {

/// Axes along which the box is contiguous in both tensors are merged into runs. Other neighbouring axes that step alike
/// are merged into one.
struct Box {
  struct Axis {
    std::int64_t extent, from_stride, to_stride;
  };
  std::vector<Axis> axes;  ///< outside a run, innermost first
  std::int64_t run = 1;    ///< contiguous elements
  std::int64_t rows = 1;   ///< runs: the product of the axes' extents
  std::int64_t from_offset = 0, to_offset = 0;
};

/// The box of `extents` at `from_starts` of a tensor of shape `from` and at `to_starts` of one of shape `to`.
Box MakeBox(const Shape& extents, const Shape& from, const Shape& from_starts, const Shape& to, const Shape& to_starts);

/// A tensor of shape `whole` that is cut into parts of `sizes` along `axis`, or joined from them: each part's box.
std::vector<Box> PartsAlong(std::size_t axis, const Shape& whole, const std::vector<std::int64_t>& sizes, bool joins);

}  // namespace mpc
