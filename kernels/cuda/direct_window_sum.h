// The window sum for few channels (LeNet's 1 and 6, depthwise). A thread computes several channels of one pixel, with
// the weights of those channels in shared memory. Where there are few pixels several neighbouring threads share one:
// each takes some rows of the windows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/window_sum.h"

namespace mpc::cuda {

inline constexpr int kDirectThreads = 128;
/// Weights that a block keeps at a time, if a single source channel's are not more.
inline constexpr int kDirectSharedBytes = 16 << 10;
/// A single source channel's weights are at most these, which every device gives a block without being asked.
inline constexpr int kMostDirectSharedBytes = 48 << 10;
/// The most taps of a window such that the weights of four results fit.
inline constexpr int kMostDirectTaps = kMostDirectSharedBytes / (4 * static_cast<int>(sizeof(float)));

inline constexpr int kMostDirectParts = 8;

/// How a direct window sum is dealt out.
struct DirectPlan {
  int results;   ///< channels of a thread: 4, 8 or 16
  int chunks;    ///< chunks of `results` channels that make up a group
  int channels;  ///< source channels whose weights are in shared memory together
  int parts;     ///< neighbouring threads of a pixel: 1, 2, 4 or 8
  int blocks;    ///< blocks that the pixels are shared out over

  std::size_t shared_bytes(const WindowSum& sum) const {
    return static_cast<std::size_t>(channels) * sum.taps() * results * sizeof(float);
  }
};

/// Takes the most results per thread that still fill the device and whose weights fit. A window has at most
/// kMostDirectTaps taps.
inline DirectPlan PlanDirect(const Target& target, const WindowSum& sum) {
  DirectPlan plan{};
  plan.blocks = static_cast<int>((static_cast<std::int64_t>(sum.pixels()) + kDirectThreads - 1) / kDirectThreads);
  for (int results : {16, 8, 4}) {
    plan.results = results;
    plan.chunks = (sum.results + results - 1) / results;
    const bool useful = results < sum.results + 4;
    const bool fits = sum.taps() * results * static_cast<int>(sizeof(float)) <= kMostDirectSharedBytes;
    const std::int64_t blocks = static_cast<std::int64_t>(plan.blocks) * sum.groups * plan.chunks;
    if (useful && fits && blocks >= 2 * target.multiprocessors) break;
  }
  // Parts are worth the addition at their end where they let four times as many threads hide each other's loads. Each
  // has two rows at least.
  plan.parts = 1;
  const int rows = sum.sources * sum.kernel_height;
  const auto blocks = [&] { return static_cast<std::int64_t>(plan.blocks) * sum.groups * plan.chunks; };
  while (plan.parts < kMostDirectParts && rows >= 4 * plan.parts && blocks() < 8 * target.multiprocessors) {
    plan.parts *= 2;
    plan.blocks =
        static_cast<int>((static_cast<std::int64_t>(sum.pixels()) * plan.parts + kDirectThreads - 1) / kDirectThreads);
  }
  const int bytes = sum.taps() * plan.results * static_cast<int>(sizeof(float));
  plan.channels = std::clamp(kDirectSharedBytes / bytes, 1, std::max(sum.sources, 1));
  return plan;
}

/// The results that a thread computes of its pixel: some channels of one group.
struct DirectItem {
  std::int64_t group;
  int first_result;  ///< within the group
};

/// Loads the weights of `channels` source channels from `first` on into shared memory: [source channel][tap][result].
template <int kResults>
__device__ inline void LoadDirectWeights(const WindowSum& sum, const DirectItem& item, int first, int channels,
                                         const Source& weight, float* weights) {
  const int taps = sum.taps();
  for (int e = static_cast<int>(threadIdx.x); e < channels * taps * kResults; e += kDirectThreads) {
    const int term = e / kResults;
    const int r = item.first_result + e % kResults;
    const std::int64_t at = item.group * sum.group_weights() + r * sum.weight_result_stride +
                            (first + term / taps) * sum.weight_source_stride + term % taps;
    weights[e] = r < sum.results ? weight.Load(at) : 0.0f;
  }
}

/// Adds the products of the taps of one row of a window. `line` is the source row's first element; `factors` are the
/// row's weights. kTaps source elements are read together.
template <int kResults, int kTaps>
__device__ inline void AccumulateDirectRow(const WindowSum& sum, const WindowPixel& pixel, const Source& source,
                                           std::int64_t line, const Quad* row_factors, float* sums) {
  for (int v = 0; v < sum.kernel_width; v += kTaps) {
    std::int64_t at[kTaps];
    float x[kTaps];
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      const int column = v + t < sum.kernel_width ? sum.columns.IndexAt(pixel.column, v + t) : -1;
      at[t] = column < 0 ? -1 : line + column * sum.source.pixel_stride;
    }
    LoadEach(source, at, x);
    const Quad* const factors = row_factors + v * (kResults / 4);
#pragma unroll
    for (int t = 0; t < kTaps; ++t) {
      if (v + t >= sum.kernel_width) continue;
#pragma unroll
      for (int q = 0; q < kResults / 4; ++q) {
        const Quad factor = factors[t * (kResults / 4) + q];
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[q * 4 + i] = std::fma(x[t], factor.values[i], sums[q * 4 + i]);
      }
    }
  }
}

/// Adds the products of `channels` source channels from `first` on, whose weights are in shared memory. Of `parts`
/// threads the `part`-th takes every `parts`-th row of their windows.
template <int kResults, int kTaps>
__device__ inline void AccumulateDirect(const WindowSum& sum, const WindowPixel& pixel, const DirectItem& item,
                                        int first, int channels, int part, int parts, const Source& source,
                                        const Quad* weights, float* sums) {
  for (int window_row = part; window_row < channels * sum.kernel_height; window_row += parts) {
    const int s = window_row / sum.kernel_height;
    const int row = sum.rows.IndexAt(pixel.row, window_row - s * sum.kernel_height);
    if (row < 0) continue;
    const std::int64_t line = pixel.image * sum.source.batch_stride +
                              (item.group * sum.sources + first + s) * sum.source.channel_stride +
                              static_cast<std::int64_t>(row) * sum.source_width * sum.source.pixel_stride;
    AccumulateDirectRow<kResults, kTaps>(sum, pixel, source, line,
                                         weights + window_row * sum.kernel_width * (kResults / 4), sums);
  }
}

/// Finishes and stores the sums, four channels at a time where these lie side by side.
template <int kResults>
__device__ inline void StoreDirect(const WindowSum& sum, const WindowPixel& pixel, const DirectItem& item,
                                   const float* sums, const WindowResult& result) {
  const std::int64_t channel = item.group * sum.results + item.first_result;
  const std::int64_t to = pixel.image * sum.result.batch_stride + channel * sum.result.channel_stride +
                          pixel.pixel * sum.result.pixel_stride;
  const bool vectors = sum.result.channel_stride == 1 && to % 4 == 0;
#pragma unroll
  for (int q = 0; q < kResults; q += 4) {
    float values[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      values[i] = item.first_result + q + i < sum.results ? result.Finish(channel + q + i, sums[q + i]) : 0.0f;
    }
    const int left = sum.results - item.first_result - q;
    const int count = left < 4 ? left : 4;
    if (vectors && count == 4) {
      StoreSome(result.y, to + q, 4, true, values);
      continue;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i < count) result.y.Store(to + (q + i) * sum.result.channel_stride, values[i]);
    }
  }
}

/// Each thread computes kResults channels of its pixel; kTaps source elements of a window's row are read together.
template <int kResults, int kTaps>
__global__ void __launch_bounds__(kDirectThreads, 4)
    DirectWindowSumKernel(WindowSum sum, DirectPlan plan, Source source, Source weight, WindowResult result) {
  AwaitEarlierLaunches();
  Quad* const weights = dynamic_shared<Quad>();
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kDirectThreads + threadIdx.x;
  const std::int64_t index = thread / plan.parts;
  const int part = static_cast<int>(thread % plan.parts);
  const bool inside = index < sum.pixels();
  const WindowPixel pixel = WindowPixel::Create(sum, inside ? static_cast<int>(index) : 0);
  for (int work = static_cast<int>(blockIdx.y); work < sum.groups * plan.chunks; work += gridDim.y) {
    const DirectItem item = {work / plan.chunks, work % plan.chunks * kResults};
    float sums[kResults] = {};
    for (int first = 0; first < sum.sources; first += plan.channels) {
      const int channels = sum.sources - first < plan.channels ? sum.sources - first : plan.channels;
      // No thread may still read the weights of the channels before.
      __syncthreads();
      LoadDirectWeights<kResults>(sum, item, first, channels, weight, reinterpret_cast<float*>(weights));
      __syncthreads();
      if (!inside) continue;
      AccumulateDirect<kResults, kTaps>(sum, pixel, item, first, channels, part, plan.parts, source, weights, sums);
    }
    for (int lanes = plan.parts / 2; lanes > 0; lanes /= 2) {
#pragma unroll
      for (float& value : sums) value += __shfl_xor_sync(kFullWarp, value, lanes);
    }
    if (inside && part == 0) StoreDirect<kResults>(sum, pixel, item, sums, result);
  }
}

template <int kResults>
absl::Status EnqueueDirect(LaunchQueue& queue, const DirectPlan& plan, const WindowSum& sum, const Source& source,
                           const Source& weight, const WindowResult& result) {
  LaunchShape shape;
  shape.threads = kDirectThreads;
  shape.blocks_x = static_cast<unsigned>(plan.blocks);
  shape.blocks_y = static_cast<unsigned>(std::min(sum.groups * plan.chunks, 65535));
  shape.shared_bytes = plan.shared_bytes(sum);
  const auto kernel =
      sum.kernel_width % 5 == 0 ? &DirectWindowSumKernel<kResults, 5> : &DirectWindowSumKernel<kResults, 3>;
  return launch(queue, kernel, shape, sum, plan, source, weight, result);
}

}  // namespace mpc::cuda
