// A convolution and its derivative by the input as one sum. Every result gathers the products of a weight and a source
// element, so that no two threads add to one element.
//
//   result[n, g * results + r, i, j] = sum over s < sources, u, v of weight(g, r, s, u, v) * x(s, u, v)
//
//   with x(s, u, v) = source[n, g * sources + s, rows(i, u), columns(j, v)]
#pragma once

#include <cstdint>

#include "kernels/cuda/convolution.h"
#include "kernels/cuda/tile_product.h"
#include "kernels/scalar/fused_activation.h"

namespace mpc::cuda {

/// The position along an axis of the source that a result reads with a tap of the window.
struct SourceAxis {
  int scale, offset, step, divisor, extent;

  /// The coordinate, or -1 where the tap meets padding, or lies between the positions that a stride leaves out.
  __device__ __forceinline__ int IndexAt(int position, int tap) const {
    int at = position * scale + offset + tap * step;
    if (at < 0) return -1;
    if (divisor != 1) {
      if (at % divisor != 0) return -1;
      at /= divisor;
    }
    return at < extent ? at : -1;
  }
};

struct WindowSum {
  int batch, groups, results, sources;
  int kernel_height, kernel_width;
  int result_width, source_width;
  SourceAxis rows, columns;
  ImageLayout result, source;
  std::int64_t weight_result_stride, weight_source_stride;

  MPC_HOST_DEVICE int taps() const { return kernel_height * kernel_width; }
  MPC_HOST_DEVICE int pixels() const { return batch * result.pixels; }
  MPC_HOST_DEVICE std::int64_t group_weights() const { return static_cast<std::int64_t>(results) * sources * taps(); }
};

/// The sum of y from x: each result reads the pixels under its window.
inline WindowSum ForwardSum(const ConvolutionShape& shape) {
  const Window& window = shape.window;
  const auto axis = [&](std::size_t i) {
    return SourceAxis{static_cast<int>(window.stride[i]), -static_cast<int>(window.pad_begin[i]),
                      static_cast<int>(window.dilation[i]), 1, static_cast<int>(window.input[i])};
  };
  return {static_cast<int>(shape.batch),
          static_cast<int>(shape.groups),
          static_cast<int>(shape.results),
          static_cast<int>(shape.sources),
          static_cast<int>(window.kernel[0]),
          static_cast<int>(window.kernel[1]),
          static_cast<int>(window.output[1]),
          static_cast<int>(window.input[1]),
          axis(0),
          axis(1),
          shape.y,
          shape.x,
          shape.sources * shape.taps(),
          shape.taps()};
}

/// A result pixel.
struct WindowPixel {
  int image, pixel, row, column;

  __device__ static WindowPixel Create(const WindowSum& sum, int index) {
    const int pixel = index % sum.result.pixels;
    return {index / sum.result.pixels, pixel, pixel / sum.result_width, pixel % sum.result_width};
  }
};

/// Adds the bias, applies the activation, rounds once.
struct WindowResult {
  Sink y;
  Source bias;  ///< null data: none
  Activation activation;
  ImageLayout layout;
  int channels;  ///< channels of a group

  __device__ __forceinline__ float Finish(std::int64_t channel, float sum) const {
    return scalar::Activate(activation, bias.data == nullptr ? sum : sum + bias.Load(channel));
  }

  /// Stores the result of one pixel of image `image`; `channel` counts those of all groups.
  __device__ __forceinline__ void StoreAt(std::int64_t image, int channel, int pixel, float sum) const {
    y.Store(image * layout.batch_stride + channel * layout.channel_stride + pixel * layout.pixel_stride,
            Finish(channel, sum));
  }

  /// Stores results as a product gives them: rows are the group's channels, columns the pixels of all images.
  __device__ void Store(std::int64_t group, std::int64_t row, std::int64_t column, const float (&sums)[4],
                        int count) const {
    const std::int64_t channel = group * channels + row;
    float values[4];
    for (int i = 0; i < 4; ++i) values[i] = Finish(channel, sums[i]);
    const std::int64_t start = channel * layout.channel_stride;
    const auto at = [&](int index) {
      return index / layout.pixels * layout.batch_stride + start + index % layout.pixels * layout.pixel_stride;
    };
    const int first = static_cast<int>(column);
    if (layout.pixel_stride == 1 && layout.pixels % 4 == 0) return StoreSome(y, at(first), count, true, values);
    for (int i = 0; i < 4; ++i) {
      if (i < count) y.Store(at(first + i), values[i]);
    }
  }
};

/// The weights as left operand: rows are a group's results, k = (u * kernel_width + v) * sources + s.
struct WindowWeights {
  Source data;
  std::int64_t group_stride, result_stride, source_stride;
  int results, sources;

  struct Cursor {
    std::int64_t offset;
    bool inside;
  };

  __device__ bool along_depth() const { return true; }
  __device__ Cursor CursorAt(std::int64_t group, std::int64_t row) const {
    return {group * group_stride + row * result_stride, row < results};
  }
  __device__ void Load(const Cursor& cursor, std::int64_t k, std::int64_t end, float (&values)[kVector]) const {
    if (!cursor.inside || k >= end) return Clear(values);
    int source = static_cast<int>(k) % sources;
    std::int64_t at = cursor.offset + static_cast<int>(k) / sources + source * source_stride;
    std::int64_t index[kVector];
    for (int i = 0; i < kVector; ++i) {
      index[i] = k + i < end ? at : -1;
      at += source_stride;
      if (++source == sources) {
        source = 0;
        at += 1 - sources * source_stride;
      }
    }
    LoadEach(data, index, values);
  }
};

/// The source as right operand: columns are the result's pixels, k as in WindowWeights.
struct WindowSources {
  Source data;
  WindowSum sum;
  bool vectors;  ///< channels lie together in aligned eights

  struct Cursor {
    std::int64_t offset;
    int row, column;
    bool inside;
  };

  __device__ bool along_depth() const { return true; }
  __device__ Cursor CursorAt(std::int64_t group, std::int64_t index) const {
    const WindowPixel pixel = WindowPixel::Create(sum, static_cast<int>(index));
    return {pixel.image * sum.source.batch_stride + group * sum.sources * sum.source.channel_stride, pixel.row,
            pixel.column, index < sum.pixels()};
  }
  /// The address of the first channel under a tap; negative where there is none.
  __device__ __forceinline__ std::int64_t Tap(const Cursor& cursor, int tap) const {
    const int row = sum.rows.IndexAt(cursor.row, tap / sum.kernel_width);
    const int column = sum.columns.IndexAt(cursor.column, tap % sum.kernel_width);
    if (row < 0 || column < 0) return -1;
    return cursor.offset + (static_cast<std::int64_t>(row) * sum.source_width + column) * sum.source.pixel_stride;
  }
  __device__ void Load(const Cursor& cursor, std::int64_t k, std::int64_t end, float (&values)[kVector]) const {
    if (!cursor.inside || k >= end) return Clear(values);
    int tap = static_cast<int>(k) / sum.sources;
    int channel = static_cast<int>(k) % sum.sources;
    std::int64_t at = Tap(cursor, tap);
    if (vectors) {
      if (at < 0) return Clear(values);
      return data.LoadVector(at + channel, values);
    }
    std::int64_t index[kVector];
    for (int i = 0; i < kVector; ++i) {
      index[i] = k + i < end && at >= 0 ? at + channel * sum.source.channel_stride : -1;
      if (++channel == sum.sources) {
        channel = 0;
        ++tap;
        if (k + i + 1 < end) at = Tap(cursor, tap);
      }
    }
    LoadEach(data, index, values);
  }
};

}  // namespace mpc::cuda
