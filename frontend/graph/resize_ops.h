// Functions that resize images [N, C, H, W]. See frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc {

/// Either `size` or `scale_factor` is given: one value, or one for the height and one for the width.
struct InterpolateOptions {
  std::vector<std::int64_t> size;
  /// An extent becomes the integer below its product with the factor. The positions of pixels follow from the extents,
  /// as with recompute_scale_factor = True.
  std::vector<double> scale_factor;
  std::string mode = "nearest";  ///< nearest, nearest-exact, bilinear
  /// For bilinear alone: the centres of corner pixels stay in place. Left out it is false, which moves pixels by their
  /// centres (half_pixel).
  std::optional<bool> align_corners;
};
/// An image of another size, with MindSpore's and PyTorch's names. Modes of other ranks (linear, bicubic, area) are not
/// there.
Tensor interpolate(const Tensor& x, const InterpolateOptions& options);

namespace ops {

using mpc::interpolate;

/// MindSpore's primitives: `size` is the new height and width. Without an option pixel i lies at i * input / output. At
/// most one option is true.
Tensor ResizeNearestNeighbor(const Tensor& x, const std::vector<std::int64_t>& size, bool align_corners = false,
                             bool half_pixel_centers = false);
/// As ResizeNearestNeighbor, bilinear.
Tensor ResizeBilinear(const Tensor& x, const std::vector<std::int64_t>& size, bool align_corners = false,
                      bool half_pixel_centers = false);

}  // namespace ops
}  // namespace mpc
