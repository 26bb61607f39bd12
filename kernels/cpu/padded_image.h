// An image in f32 with the padding of its convolution around it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/narrow_conv2d.h"

namespace mpc::cpu {

/// Channels that are few for a library.
inline constexpr std::int64_t kMaxNarrow = 8;
/// Rows of a narrow convolution's window at most.
inline constexpr int kMaxWindowRows = 5;
/// Floats that loops may read and write behind an image, with what they hold: three vectors of the widest level.
inline constexpr std::int64_t kFloatsBehindImage = 48;
/// Floats of one image, or of a block of its results, on the stack.
inline constexpr std::int64_t kImageFloats = 24 * 1024;

/// The image leaves out pixels at the end of the input that no window reads.
struct PaddedImage {
  std::int64_t rows, columns, channels;  ///< padding included
  std::int64_t image_rows, image_columns, top, left;
  bool planes = false;  ///< one channel after the other; else channels-last

  /// x, or dx, with the padding of the convolution.
  static PaddedImage InputOf(const NarrowConvolution& c) {
    const Window& w = c.window;
    return {w.output[0] + w.kernel[0] - 1,
            w.output[1] + w.kernel[1] - 1,
            c.in_channels,
            w.input[0],
            w.input[1],
            w.pad_begin[0],
            w.pad_begin[1]};
  }

  std::int64_t pixel_step() const { return planes ? 1 : channels; }
  std::int64_t channel_step() const { return planes ? rows * columns : 1; }
  std::int64_t pitch() const { return columns * pixel_step(); }
  /// Floats of the image, with room for vectors that end behind the last pixel.
  std::int64_t size() const { return rows * columns * channels + kFloatsBehindImage; }
  std::int64_t OffsetOf(std::int64_t row) const { return (row + top) * pitch() + left * pixel_step(); }

  /// Whether the image can be filled.
  bool fits() const { return !planes || image_columns * channels <= kBlock; }

  void Fill(Source source, std::int64_t image, float* target) const {
    const std::int64_t run = image_columns * channels;
    const std::int64_t fitting_rows = std::min(image_rows, rows - top);
    const std::int64_t fitting_columns = std::min(image_columns, columns - left);
    std::fill_n(target, size(), 0.0f);
    if (!planes && run == pitch() && fitting_columns == image_columns) {
      return LoadFloats(source.dtype, source.data, image * image_rows * run, fitting_rows * run, target + OffsetOf(0));
    }
    BlockBuffer buffer;
    for (std::int64_t row = 0; row < fitting_rows; ++row) {
      const std::int64_t offset = (image * image_rows + row) * run;
      float* to = target + OffsetOf(row);
      if (!planes) {
        LoadFloats(source.dtype, source.data, offset, fitting_columns * channels, to);
        continue;
      }
      const float* from = source.Load(offset, fitting_columns * channels, buffer.values);
      for (std::int64_t channel = 0; channel < channels; ++channel, to += channel_step()) {
        for (std::int64_t column = 0; column < fitting_columns; ++column)
          to[column] = from[column * channels + channel];
      }
    }
  }
};

}  // namespace mpc::cpu
