// Addressing of activations in either data format.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/attributes.h"
#include "kernels/known_attributes.h"
#include "kernels/tensor_spec.h"
#include "kernels/window.h"

namespace mpc::reference {

/// Extents and flat index of an activation: rank 4 in `data_format`, or rank 2 as [batch, channels] with one pixel.
class Image {
 public:
  Image(const Attributes& attributes, const Shape& shape) {
    const Shape strides = RowMajorStrides(shape);
    if (shape.size() == 2) {
      batch = shape[0];
      channels = shape[1];
      batch_stride_ = strides[0];
      channel_stride_ = strides[1];
      return;
    }
    const ImageAxes axes = AxesOf(attributes.Get(attribute::kDataFormat));
    std::tie(batch, batch_stride_) = Axis(shape, strides, axes.batch);
    std::tie(channels, channel_stride_) = Axis(shape, strides, axes.channel);
    std::tie(height, row_stride_) = Axis(shape, strides, axes.height);
    std::tie(width, column_stride_) = Axis(shape, strides, axes.width);
  }

  std::size_t IndexAt(std::int64_t n, std::int64_t c, std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(n * batch_stride_ + c * channel_stride_ + row * row_stride_ +
                                    column * column_stride_);
  }
  bool Contains(std::int64_t row, std::int64_t column) const {
    return row >= 0 && row < height && column >= 0 && column < width;
  }

  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t height = 1;
  std::int64_t width = 1;

 private:
  static std::pair<std::int64_t, std::int64_t> Axis(const Shape& shape, const Shape& strides, int axis) {
    return {shape[static_cast<std::size_t>(axis)], strides[static_cast<std::size_t>(axis)]};
  }

  std::int64_t batch_stride_ = 0;
  std::int64_t channel_stride_ = 0;
  std::int64_t row_stride_ = 0;
  std::int64_t column_stride_ = 0;
};

/// Calls `visit(index)` for each element of channel `c`.
template <typename Visit>
void VisitChannel(const Image& image, std::int64_t c, Visit visit) {
  for (std::int64_t n = 0; n < image.batch; ++n) {
    for (std::int64_t i = 0; i < image.height; ++i) {
      for (std::int64_t j = 0; j < image.width; ++j) visit(image.IndexAt(n, c, i, j));
    }
  }
}

inline double ElementsPerChannel(const Image& image) {
  return static_cast<double>(image.batch * image.height * image.width);
}

/// Mean and biased variance of a channel.
struct ChannelMoments {
  double mean, variance;
};

inline ChannelMoments MomentsOfChannel(const Image& image, const std::vector<double>& values, std::int64_t c) {
  double sum = 0, squares = 0;
  VisitChannel(image, c, [&](std::size_t i) { sum += values[i]; });
  const double mean = sum / ElementsPerChannel(image);
  VisitChannel(image, c, [&](std::size_t i) { squares += (values[i] - mean) * (values[i] - mean); });
  return {mean, squares / ElementsPerChannel(image)};
}

/// Calls `visit(u, v, row, column)` for each window position (u, v) of result pixel (i, j), in row-major order. (row,
/// column) is the input pixel under that position, which may lie in the padding.
template <typename Visit>
void VisitWindow(const Window& window, std::int64_t i, std::int64_t j, Visit visit) {
  for (std::int64_t u = 0; u < window.kernel[0]; ++u) {
    for (std::int64_t v = 0; v < window.kernel[1]; ++v) {
      visit(u, v, i * window.stride[0] - window.pad_begin[0] + u * window.dilation[0],
            j * window.stride[1] - window.pad_begin[1] + v * window.dilation[1]);
    }
  }
}

}  // namespace mpc::reference
