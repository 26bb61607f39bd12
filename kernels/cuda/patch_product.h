// The derivative of a convolution by its weight as a product over all result pixels. Rows are a group's results.
// Columns are the terms (s, u, v) of their windows, in the order of the weight's elements.
#pragma once

#include <cstdint>

#include "kernels/cuda/convolution.h"
#include "kernels/cuda/tile_product.h"

namespace mpc::cuda {

/// A convolution's extents as the device computes with them.
struct PatchShape {
  int batch, groups, sources, results;
  int kernel_height, kernel_width;
  int stride_height, stride_width, dilation_height, dilation_width, top, left;
  int height, width;  ///< extents of x
  int result_width;
  ImageLayout x, y;

  static PatchShape Create(const ConvolutionShape& shape) {
    const Window& window = shape.window;
    const auto number = [](std::int64_t value) { return static_cast<int>(value); };
    return {number(shape.batch),
            number(shape.groups),
            number(shape.sources),
            number(shape.results),
            number(window.kernel[0]),
            number(window.kernel[1]),
            number(window.stride[0]),
            number(window.stride[1]),
            number(window.dilation[0]),
            number(window.dilation[1]),
            number(window.pad_begin[0]),
            number(window.pad_begin[1]),
            number(window.input[0]),
            number(window.input[1]),
            number(window.output[1]),
            shape.x,
            shape.y};
  }

  MPC_HOST_DEVICE int terms() const { return sources * kernel_height * kernel_width; }
  MPC_HOST_DEVICE int positions() const { return batch * y.pixels; }
};

/// The element that a term reads, relative to the begin of a result pixel's window.
struct PatchTerm {
  std::int64_t offset;
  int row, column;

  __device__ static PatchTerm Create(const PatchShape& shape, int term) {
    const int tap = term % (shape.kernel_height * shape.kernel_width);
    const int source = term / (shape.kernel_height * shape.kernel_width);
    const int row = tap / shape.kernel_width * shape.dilation_height;
    const int column = tap % shape.kernel_width * shape.dilation_width;
    return {source * shape.x.channel_stride +
                (static_cast<std::int64_t>(row) * shape.width + column) * shape.x.pixel_stride,
            row, column};
  }
};

/// Where the window of a result pixel begins; its address may lie outside the image.
struct PatchOrigin {
  std::int64_t offset;
  int row, column;

  __device__ static PatchOrigin Create(const PatchShape& shape, int group, int position) {
    const int pixel = position % shape.y.pixels;
    const int row = pixel / shape.result_width * shape.stride_height - shape.top;
    const int column = pixel % shape.result_width * shape.stride_width - shape.left;
    return {position / shape.y.pixels * shape.x.batch_stride +
                static_cast<std::int64_t>(group) * shape.sources * shape.x.channel_stride +
                (static_cast<std::int64_t>(row) * shape.width + column) * shape.x.pixel_stride,
            row, column};
  }

  /// The address of a term's element; -1 in the padding.
  __device__ __forceinline__ std::int64_t OffsetAt(const PatchShape& shape, const PatchTerm& term) const {
    const bool inside = static_cast<unsigned>(row + term.row) < static_cast<unsigned>(shape.height) &&
                        static_cast<unsigned>(column + term.column) < static_cast<unsigned>(shape.width);
    return inside ? offset + term.offset : -1;
  }
};

/// dy as left operand: rows are a group's channels, k the pixels of all images.
struct CotangentRows {
  Source data;
  PatchShape shape;
  bool vectors;  ///< neighbours lie together in aligned eights

  struct Cursor {
    std::int64_t offset;
    int row;
  };

  static CotangentRows Create(const PatchShape& shape, DType dtype) {
    const bool vectors = shape.y.channel_stride == 1 ? shape.results % kVector == 0 : shape.y.pixels % kVector == 0;
    return {{nullptr, dtype}, shape, vectors};
  }

  __device__ bool along_depth() const { return shape.y.channel_stride != 1; }
  __device__ Cursor CursorAt(std::int64_t group, std::int64_t row) const {
    return {(group * shape.results + row) * shape.y.channel_stride, static_cast<int>(row)};
  }
  __device__ void Load(const Cursor& cursor, std::int64_t k, std::int64_t end, float (&values)[kVector]) const {
    if (cursor.row >= shape.results || k >= end) return Clear(values);
    const auto at = [&](int position) {
      return cursor.offset + position / shape.y.pixels * shape.y.batch_stride +
             position % shape.y.pixels * shape.y.pixel_stride;
    };
    const int first = static_cast<int>(k);
    if (vectors) return data.LoadVector(at(first), values);
    if (!along_depth()) {
      const int room = shape.results - cursor.row;
      return LoadSome(data, at(first), room < kVector ? room : kVector, values);
    }
    std::int64_t index[kVector];
    for (int i = 0; i < kVector; ++i) index[i] = k + i < end ? at(first + i) : -1;
    LoadEach(data, index, values);
  }
};

/// x as right operand: columns are terms, k the pixels of all images of y.
struct PatchColumns {
  Source data;
  PatchShape shape;

  struct Cursor {
    PatchTerm term;
    int group;
    bool inside;
  };

  __device__ bool along_depth() const { return true; }
  __device__ Cursor CursorAt(std::int64_t group, std::int64_t column) const {
    return {PatchTerm::Create(shape, static_cast<int>(column)), static_cast<int>(group), column < shape.terms()};
  }
  __device__ void Load(const Cursor& cursor, std::int64_t k, std::int64_t end, float (&values)[kVector]) const {
    if (!cursor.inside || k >= end) return Clear(values);
    std::int64_t index[kVector];
    for (int i = 0; i < kVector; ++i) {
      const int position = static_cast<int>(k) + i;
      index[i] = k + i < end ? PatchOrigin::Create(shape, cursor.group, position).OffsetAt(shape, cursor.term) : -1;
    }
    LoadEach(data, index, values);
  }
};

}  // namespace mpc::cuda
