// The window sum for few channels (LeNet's 1 and 6, depthwise): a thread computes several channels of one pixel, with
// the weights of those channels in shared memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/window_sum.h"

namespace mpc::cuda {

inline constexpr int kDirectThreads = 128;
/// Weights that a block keeps at a time, if a single source channel's are not more.
inline constexpr int kDirectSharedBytes = 16 << 10;
/// A single source channel's weights are at most these, which every device gives a block without being asked.
inline constexpr int kMostDirectSharedBytes = 48 << 10;
/// Taps of a window of which four results' weights fit.
inline constexpr int kMostDirectTaps = kMostDirectSharedBytes / (4 * static_cast<int>(sizeof(float)));

/// How a direct window sum is dealt out.
struct DirectPlan {
  int results;   ///< channels of a thread: 4, 8 or 16
  int chunks;    ///< of a group's channels
  int channels;  ///< source channels whose weights are in shared memory together
  int blocks;    ///< of pixels

  std::size_t shared_bytes(const WindowSum& sum) const {
    return static_cast<std::size_t>(channels) * sum.taps() * results * sizeof(float);
  }
};

/// The most results a thread that still fill the device and whose weights fit. A window has kMostDirectTaps at most.
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
  const int bytes = sum.taps() * plan.results * static_cast<int>(sizeof(float));
  plan.channels = std::clamp(kDirectSharedBytes / bytes, 1, std::max(sum.sources, 1));
  return plan;
}

/// kTaps: taps of a window's row whose source elements are read together.
template <int kResults, int kTaps>
__global__ void __launch_bounds__(kDirectThreads, 4)
    DirectWindowSumKernel(WindowSum sum, DirectPlan plan, Source source, Source weight, WindowResult result) {
  Quad* const weights = dynamic_shared<Quad>();  // [source channel][tap][result]
  const int taps = sum.taps();
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kDirectThreads + threadIdx.x;
  const bool inside = index < sum.pixels();
  const WindowPixel pixel = WindowPixel::Of(sum, inside ? static_cast<int>(index) : 0);
  for (int item = static_cast<int>(blockIdx.y); item < sum.groups * plan.chunks; item += gridDim.y) {
    const int chunk = item % plan.chunks;
    const std::int64_t group = item / plan.chunks;
    const int first_result = chunk * kResults;
    float sums[kResults] = {};
    for (int first = 0; first < sum.sources; first += plan.channels) {
      const int channels = sum.sources - first < plan.channels ? sum.sources - first : plan.channels;
      __syncthreads();
      for (int e = static_cast<int>(threadIdx.x); e < channels * taps * kResults; e += kDirectThreads) {
        const int term = e / kResults;
        const int r = first_result + e % kResults;
        const std::int64_t at = group * sum.group_weights() + r * sum.weight_result_stride +
                                (first + term / taps) * sum.weight_source_stride + term % taps;
        reinterpret_cast<float*>(weights)[e] = r < sum.results ? weight.Load(at) : 0.0f;
      }
      __syncthreads();
      if (!inside) continue;
      for (int s = 0; s < channels; ++s) {
        const std::int64_t plane =
            pixel.image * sum.source.batch_stride + (group * sum.sources + first + s) * sum.source.channel_stride;
        for (int u = 0; u < sum.kernel_height; ++u) {
          const int row = sum.rows.At(pixel.row, u);
          if (row < 0) continue;
          const std::int64_t line = plane + static_cast<std::int64_t>(row) * sum.source_width * sum.source.pixel_stride;
          for (int v = 0; v < sum.kernel_width; v += kTaps) {
            std::int64_t at[kTaps];
            float x[kTaps];
#pragma unroll
            for (int t = 0; t < kTaps; ++t) {
              const int column = v + t < sum.kernel_width ? sum.columns.At(pixel.column, v + t) : -1;
              at[t] = column < 0 ? -1 : line + column * sum.source.pixel_stride;
            }
            LoadEach(source, at, x);
            const Quad* const factors = weights + (s * taps + u * sum.kernel_width + v) * (kResults / 4);
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
      }
    }
    if (!inside) continue;
    const std::int64_t channel = group * sum.results + first_result;
    const std::int64_t to = pixel.image * sum.result.batch_stride + channel * sum.result.channel_stride +
                            pixel.pixel * sum.result.pixel_stride;
    const bool vectors = sum.result.channel_stride == 1 && to % 4 == 0;
#pragma unroll
    for (int q = 0; q < kResults; q += 4) {
      float values[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        values[i] = first_result + q + i < sum.results ? result.Finish(channel + q + i, sums[q + i]) : 0.0f;
      }
      const int count = sum.results - first_result - q < 4 ? sum.results - first_result - q : 4;
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
