// Pooling in NCHW and NHWC as one form: `outer` images of height x width pixels with `inner` contiguous values a pixel.
// NCHW has N * C images of 1 value. NHWC has N images of C values.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/known_attributes.h"
#include "kernels/window.h"

namespace mpc {

struct PoolGeometry {
  Window window;
  std::int64_t outer = 1, inner = 1;

  /// `image` is the shape of the tensor that the windows slide over.
  static absl::StatusOr<PoolGeometry> Create(const Attributes& attributes, const Shape& image) {
    const DataFormat format = attributes.Get(attribute::kDataFormat);
    const ImageAxes axes = AxesOf(format);
    const std::vector<std::int64_t> size = attributes.Get(attribute::kKernelSize);
    const auto extent = [&](int axis) { return image[static_cast<std::size_t>(axis)]; };
    absl::StatusOr<Window> window =
        ResolveWindow(attributes, {extent(axes.height), extent(axes.width)}, {size[0], size.back()});
    if (!window.ok()) return window.status();
    PoolGeometry geometry;
    geometry.window = *window;
    const bool channels_last = format == DataFormat::kNHWC;
    geometry.outer = channels_last ? extent(axes.batch) : extent(axes.batch) * extent(axes.channel);
    geometry.inner = channels_last ? extent(axes.channel) : 1;
    return geometry;
  }

  std::int64_t input_image() const { return window.input[0] * window.input[1] * inner; }
  std::int64_t output_image() const { return window.output[0] * window.output[1] * inner; }
  /// No input pixel lies in two windows.
  bool disjoint() const { return window.kernel[0] <= window.stride[0] && window.kernel[1] <= window.stride[1]; }
};

}  // namespace mpc
