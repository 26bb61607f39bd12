// Small operands of a convolution in a block's shared memory, as f32: rows of an image with the zeros around it, and
// weights or cotangents. All loads of a block are on their way at once. Inner loops then read shared memory alone and
// compare no coordinates.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/cuda/fast_divisor.h"
#include "kernels/cuda/tile_product.h"
#include "kernels/cuda/window_sum.h"

namespace mpc::cuda {

/// Shared memory that every device gives a block without being asked.
inline constexpr int kStagedBytes = 48 << 10;
/// Threads of a block at most. A multiprocessor holds two such blocks.
inline constexpr int kStagedThreads = 416;
/// Results of a thread: channels times neighbours (pixels, or terms of a window).
inline constexpr int kStagedChannels = 8;
inline constexpr int kStagedNeighbours = 2;
inline constexpr int kStagedSums = kStagedChannels * kStagedNeighbours;

/// What windows cover of an image: `rows` rows below the first window of a run of result pixels. Staged position
/// (row, column) of channel c lies at c * plane + row * columns + column.
struct StagedImage {
  int channels, rows, columns;
  int plane;          ///< odd, so that channels of a pixel lie in different banks
  int height, width;  ///< extents of the image
  int top, left;      ///< the image's coordinate of the first staged row for result row 0, and of the first column
  int row_scale, column_scale;  ///< from one result pixel to the next, in the image
  int row_step, column_step;    ///< from one tap to the next, in staged elements
  int origin;                   ///< staged element of the first tap of the first pixel
  std::int64_t batch_stride;
  int channel_stride, pixel_stride;
  bool channels_last;
  FastDivisor inner, middle;  ///< extents in the order of the image's elements in memory

  std::int64_t elements() const { return static_cast<std::int64_t>(channels) * plane; }

  /// `channels` channels under the windows of `pixels` neighbouring result pixels. Every divisor of an axis is 1.
  static StagedImage Create(const WindowSum& sum, int channels, int pixels) {
    // A window that reaches further does not fit shared memory.
    constexpr std::int64_t kLargestPlane = kStagedBytes;
    const auto reach = [](int taps, int step) { return std::min(0, (taps - 1) * step); };
    const auto extent = [](int results, int scale, int taps, int step) {
      return (results - 1) * scale + (taps - 1) * std::abs(step) + 1;
    };
    const int result_rows = std::min((pixels + sum.result_width - 2) / sum.result_width + 1,
                                     (sum.result.pixels + sum.result_width - 1) / sum.result_width);
    StagedImage image{};
    image.channels = channels;
    image.rows = extent(result_rows, sum.rows.scale, sum.kernel_height, sum.rows.step);
    image.columns = extent(sum.result_width, sum.columns.scale, sum.kernel_width, sum.columns.step);
    image.plane = static_cast<int>(std::min(static_cast<std::int64_t>(image.rows) * image.columns, kLargestPlane)) | 1;
    image.height = sum.rows.extent;
    image.width = sum.columns.extent;
    image.top = sum.rows.offset + reach(sum.kernel_height, sum.rows.step);
    image.left = sum.columns.offset + reach(sum.kernel_width, sum.columns.step);
    image.row_scale = sum.rows.scale;
    image.column_scale = sum.columns.scale;
    image.row_step = sum.rows.step * image.columns;
    image.column_step = sum.columns.step;
    image.origin = -reach(sum.kernel_height, sum.rows.step) * image.columns - reach(sum.kernel_width, sum.columns.step);
    image.batch_stride = sum.source.batch_stride;
    image.channel_stride = static_cast<int>(sum.source.channel_stride);
    image.pixel_stride = static_cast<int>(sum.source.pixel_stride);
    image.channels_last = sum.source.channel_stride == 1;
    image.inner = FastDivisor::Create(image.channels_last ? channels : image.columns);
    image.middle = FastDivisor::Create(image.channels_last ? image.columns : image.rows);
    return image;
  }

  /// The staged element that a result pixel's first tap reads, where `first_row` is the result row of the first pixel.
  __device__ __forceinline__ int At(int row, int column, int first_row) const {
    return origin + (row - first_row) * row_scale * columns + column * column_scale;
  }
};

/// Whether no stride leaves out positions, and addresses within an image and within a group's weights fit an int.
inline bool CanStage(const WindowSum& sum) {
  constexpr std::int64_t kFewElements = std::int64_t{1} << 30;
  return sum.rows.divisor == 1 && sum.columns.divisor == 1 &&
         std::max({sum.source.batch_stride, sum.result.batch_stride, sum.group_weights()}) < kFewElements &&
         sum.batch > 0 && sum.result.pixels > 0 && sum.sources > 0;
}

/// An image's rows for result rows from `first_row` on: what StageBoth loads.
struct ImageElements {
  const StagedImage& image;
  Source source;
  std::int64_t base;  ///< address of the first channel
  int first_row;

  __device__ __forceinline__ int count() const { return image.channels * image.rows * image.columns; }
  /// Element `e` is loaded from base + `from`, or is 0 where that is negative, and goes to staged element `to`.
  __device__ __forceinline__ void Locate(int e, int& from, int& to) const {
    const int outer = image.inner.Quotient(e);
    const int in = e - outer * image.inner.divisor;
    const int out = image.middle.Quotient(outer);
    const int mid = outer - out * image.middle.divisor;
    const int channel = image.channels_last ? in : out;
    const int staged_row = image.channels_last ? out : mid;
    const int staged_column = image.channels_last ? mid : in;
    const int row = staged_row + first_row * image.row_scale + image.top;
    const int column = staged_column + image.left;
    const bool inside = static_cast<unsigned>(row) < static_cast<unsigned>(image.height) &&
                        static_cast<unsigned>(column) < static_cast<unsigned>(image.width);
    from = inside ? channel * image.channel_stride + (row * image.width + column) * image.pixel_stride : -1;
    to = channel * image.plane + staged_row * image.columns + staged_column;
  }
};

/// Elements as they are stored, 0 where the offset is negative. The loads do not wait for each other.
template <int kCount>
__device__ __forceinline__ void LoadBits(const Source& source, std::int64_t base, const int (&offsets)[kCount],
                                         std::uint32_t (&bits)[kCount]) {
  if (source.dtype == DType::kF32) {
    const auto* from = static_cast<const std::uint32_t*>(source.data) + base;
#pragma unroll
    for (int i = 0; i < kCount; ++i) bits[i] = offsets[i] < 0 ? 0u : from[offsets[i]];
  } else {
    const auto* from = static_cast<const std::uint16_t*>(source.data) + base;
#pragma unroll
    for (int i = 0; i < kCount; ++i) bits[i] = offsets[i] < 0 ? 0u : from[offsets[i]];
  }
}

template <int kCount>
__device__ __forceinline__ void StoreWidened(const Source& source, const std::uint32_t (&bits)[kCount],
                                             const int (&to)[kCount], float* shared) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const float value =
        source.dtype == DType::kF32 ? std::bit_cast<float>(bits[i]) : source.Widen(static_cast<std::uint16_t>(bits[i]));
    if (to[i] >= 0) shared[to[i]] = value;
  }
}

/// Brings the elements of two operands into shared memory, by all threads of the block. The operands have the functions
/// of ImageElements, `source` and `base`. The caller waits for the block before and behind it.
template <typename First, typename Second>
__device__ __forceinline__ void StageBoth(const First& first, const Second& second, float* to_first, float* to_second) {
  constexpr int kTogether = 8;
  const int threads = static_cast<int>(blockDim.x);
  const int first_count = first.count();
  const int second_count = second.count();
  const int count = first_count > second_count ? first_count : second_count;
  for (int start = static_cast<int>(threadIdx.x); start < count; start += kTogether * threads) {
    int first_from[kTogether], first_to[kTogether], second_from[kTogether], second_to[kTogether];
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      const int e = start + i * threads;
      first_from[i] = first_to[i] = second_from[i] = second_to[i] = -1;
      if (e < first_count) first.Locate(e, first_from[i], first_to[i]);
      if (e < second_count) second.Locate(e, second_from[i], second_to[i]);
    }
    std::uint32_t first_bits[kTogether], second_bits[kTogether];
    LoadBits(first.source, first.base, first_from, first_bits);
    LoadBits(second.source, second.base, second_from, second_bits);
    StoreWidened(first.source, first_bits, first_to, to_first);
    StoreWidened(second.source, second_bits, second_to, to_second);
  }
}

/// Sums of threads that share results, in shared memory: [part][neighbour][channel][place], with places of neighbour n
/// from n * places on.
struct StagedPartials {
  int places, parts;

  MPC_HOST_DEVICE int pitch() const { return places | 1; }
  int elements() const { return parts * kStagedSums * pitch(); }

  __device__ __forceinline__ void Store(const float (&sums)[kStagedSums], int part, int place, float* shared) const {
#pragma unroll
    for (int i = 0; i < kStagedSums; ++i) shared[(part * kStagedSums + i) * pitch() + place] = sums[i];
  }
  /// The sum over all parts, in their order.
  __device__ __forceinline__ float Sum(int place, int channel, const float* shared) const {
    const int neighbour = place < places ? 0 : 1;
    const float* const at = shared + (neighbour * kStagedChannels + channel) * pitch() + place - neighbour * places;
    float sum = at[0];
#pragma unroll 4
    for (int p = 1; p < parts; ++p) sum += at[p * kStagedSums * pitch()];
    return sum;
  }
};

/// sums[n][c] += values[n] * factors[c].
__device__ __forceinline__ void AddOuterProduct(const float (&values)[kStagedNeighbours], const Quad* factors,
                                                float (&sums)[kStagedSums]) {
#pragma unroll
  for (int q = 0; q < kStagedChannels / 4; ++q) {
    const Quad factor = factors[q];
#pragma unroll
    for (int n = 0; n < kStagedNeighbours; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& sum = sums[n * kStagedChannels + q * 4 + i];
        sum = std::fma(values[n], factor.values[i], sum);
      }
    }
  }
}

/// Parts of equal size, as few as their size allows: at most `most` of `count` items.
inline int EvenParts(int count, int most) {
  const int size = (count + most - 1) / most;
  return (count + size - 1) / size;
}

}  // namespace mpc::cuda
