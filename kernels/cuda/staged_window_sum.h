// The window sum of small images (LeNet's). A block computes eight channels of a band of one image's pixels. It keeps
// what their windows cover and the weights in shared memory. Threads that share pixels take some rows of the windows
// each; their sums are added in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/staged_image.h"

namespace mpc::cuda {

/// How a staged window sum is dealt out.
struct StagedPlan {
  StagedImage image;
  StagedPartials partials;  ///< places are pixels of a band
  int bands, band_pixels;
  int chunks;  ///< chunks of kStagedChannels channels that make up a group
  int results, sources, kernel_height, kernel_width;
  int pixels;  ///< pixels of a result image
  std::int64_t group_weights;
  int weight_result_stride, weight_source_stride;
  FastDivisor places, result_width, taps, by_band;

  MPC_HOST_DEVICE int weights() const { return sources * taps.divisor * kStagedChannels; }
  std::size_t shared_bytes() const {
    const std::int64_t operands = weights() + image.elements();
    return static_cast<std::size_t>(std::max<std::int64_t>(operands, partials.elements())) * sizeof(float);
  }
  unsigned threads() const {
    return static_cast<unsigned>((partials.places * partials.parts + kWarpSize - 1) / kWarpSize * kWarpSize);
  }
};

/// Cuts images into bands where they alone are too few blocks. None where the operands do not fit shared memory, and
/// where a stride of the derivative leaves out positions. None for so few channels that most of a thread's eight would
/// be empty, and for more bands than a grid has blocks.
inline std::optional<StagedPlan> PlanStaged(const Target& target, const WindowSum& sum) {
  constexpr int kFewestPixels = 16;
  constexpr int kMostParts = 16;
  constexpr std::int64_t kMostBlocks = 65535;
  if (!CanStage(sum) || sum.results <= kStagedChannels / 2) return std::nullopt;
  StagedPlan plan{};
  plan.chunks = (sum.results + kStagedChannels - 1) / kStagedChannels;
  const std::int64_t sets = static_cast<std::int64_t>(sum.batch) * sum.groups * plan.chunks;
  const std::int64_t terms = static_cast<std::int64_t>(sum.sources) * sum.taps();
  constexpr std::int64_t kMostTerms = kStagedBytes / (kStagedChannels * static_cast<int>(sizeof(float)));
  if (static_cast<std::int64_t>(sum.groups) * plan.chunks > kMostBlocks || terms > kMostTerms) {
    return std::nullopt;
  }
  plan.results = sum.results;
  plan.sources = sum.sources;
  plan.kernel_height = sum.kernel_height;
  plan.kernel_width = sum.kernel_width;
  plan.pixels = sum.result.pixels;
  plan.group_weights = sum.group_weights();
  plan.weight_result_stride = static_cast<int>(sum.weight_result_stride);
  plan.weight_source_stride = static_cast<int>(sum.weight_source_stride);
  plan.result_width = FastDivisor::Create(sum.result_width);
  plan.taps = FastDivisor::Create(sum.taps());
  const int wanted = static_cast<int>(std::max<std::int64_t>(1, target.multiprocessors / sets));
  const int fitting = (plan.pixels + kStagedNeighbours * kStagedThreads - 1) / (kStagedNeighbours * kStagedThreads);
  for (int bands = std::max(std::min(wanted, (plan.pixels + kFewestPixels - 1) / kFewestPixels), fitting);; ++bands) {
    plan.band_pixels = (plan.pixels + bands - 1) / bands;
    plan.bands = (plan.pixels + plan.band_pixels - 1) / plan.band_pixels;
    if (plan.bands > kMostBlocks || (bands > 1 && plan.band_pixels < kFewestPixels)) return std::nullopt;
    plan.image = StagedImage::Create(sum, sum.sources, plan.band_pixels);
    const int places = (plan.band_pixels + kStagedNeighbours - 1) / kStagedNeighbours;
    plan.places = FastDivisor::Create(places);
    plan.by_band = FastDivisor::Create(plan.band_pixels);
    const int most = std::clamp(kStagedThreads / places, 1, kMostParts);
    plan.partials = {places, EvenParts(sum.sources * sum.kernel_height, most)};
    if (plan.shared_bytes() <= kStagedBytes) return plan;
  }
}

/// The weights of a block's channels: [source][tap][channel].
struct StagedWeights {
  const StagedPlan& plan;
  Source source;
  std::int64_t base;
  int first_result;

  __device__ __forceinline__ int count() const { return plan.weights(); }
  __device__ __forceinline__ void Locate(int e, int& from, int& to) const {
    const int channel = first_result + e % kStagedChannels;
    const int term = e / kStagedChannels;
    const int s = plan.taps.Quotient(term);
    const int at = channel * plan.weight_result_stride + s * plan.weight_source_stride + term - s * plan.taps.divisor;
    from = channel < plan.results ? at : -1;
    to = e;
  }
};

/// Adds the products of a thread's rows of the windows. kTaps divides the window's width.
template <int kTaps>
__device__ __forceinline__ void AccumulateStaged(const StagedPlan& plan, const float* image, const Quad* weights,
                                                 const int (&at)[kStagedNeighbours], int part,
                                                 float (&sums)[kStagedSums]) {
  const int rows = plan.sources * plan.kernel_height;
  const int source_step = plan.partials.parts / plan.kernel_height;
  const int tap_step = plan.partials.parts - source_step * plan.kernel_height;
  int source = part / plan.kernel_height;
  int tap = part - source * plan.kernel_height;
  for (int row = part; row < rows; row += plan.partials.parts) {
    const float* const line = image + source * plan.image.plane + tap * plan.image.row_step;
    const Quad* const factors = weights + row * plan.kernel_width * (kStagedChannels / 4);
    for (int v = 0; v < plan.kernel_width; v += kTaps) {
#pragma unroll
      for (int t = 0; t < kTaps; ++t) {
        const int column = (v + t) * plan.image.column_step;
        const float values[kStagedNeighbours] = {line[at[0] + column], line[at[1] + column]};
        AddOuterProduct(values, factors + (v + t) * (kStagedChannels / 4), sums);
      }
    }
    source += source_step;
    tap += tap_step;
    if (tap >= plan.kernel_height) {
      tap -= plan.kernel_height;
      ++source;
    }
  }
}

/// Block (image, band, chunk of a group).
template <int kTaps>
__global__ void __launch_bounds__(kStagedThreads, 2)
    StagedWindowSumKernel(StagedPlan plan, Source source, Source weight, WindowResult result) {
  AwaitEarlierLaunches();
  float* const shared = dynamic_shared<float>();
  float* const image = shared + plan.weights();
  const int group = static_cast<int>(blockIdx.z) / plan.chunks;
  const int first_result = (static_cast<int>(blockIdx.z) - group * plan.chunks) * kStagedChannels;
  const int first_pixel = static_cast<int>(blockIdx.y) * plan.band_pixels;
  const int room = plan.pixels - first_pixel;
  const int count = room < plan.band_pixels ? room : plan.band_pixels;
  const int first_row = plan.result_width.Quotient(first_pixel);
  // ---- Operands
  const std::int64_t base = blockIdx.x * plan.image.batch_stride +
                            static_cast<std::int64_t>(group) * plan.sources * plan.image.channel_stride;
  StageBoth(StagedWeights{plan, weight, group * plan.group_weights, first_result},
            ImageElements{plan.image, source, base, first_row}, shared, image);
  __syncthreads();
  // ---- Sums of the thread: some rows of the windows of two pixels
  const int part = plan.places.Quotient(static_cast<int>(threadIdx.x));
  const int place = static_cast<int>(threadIdx.x) - part * plan.partials.places;
  float sums[kStagedSums] = {};
  if (part < plan.partials.parts) {
    int at[kStagedNeighbours];
#pragma unroll
    for (int n = 0; n < kStagedNeighbours; ++n) {
      const int in_band = place + n * plan.partials.places;
      const int pixel = first_pixel + (in_band < count ? in_band : 0);
      const int row = plan.result_width.Quotient(pixel);
      at[n] = plan.image.At(row, pixel - row * plan.result_width.divisor, first_row);
    }
    AccumulateStaged<kTaps>(plan, image, reinterpret_cast<const Quad*>(shared), at, part, sums);
  }
  // ---- Sums of all parts. The operands' place is used again.
  __syncthreads();
  if (part < plan.partials.parts) plan.partials.Store(sums, part, place, shared);
  __syncthreads();
  // Neighbouring threads store neighbours.
  const bool channels_last = result.layout.channel_stride == 1;
  for (int e = static_cast<int>(threadIdx.x); e < plan.band_pixels * kStagedChannels;
       e += static_cast<int>(blockDim.x)) {
    const int channel = channels_last ? e % kStagedChannels : plan.by_band.Quotient(e);
    const int pixel = channels_last ? e / kStagedChannels : e - channel * plan.band_pixels;
    if (first_result + channel >= plan.results || pixel >= count) continue;
    result.StoreAt(blockIdx.x, group * plan.results + first_result + channel, first_pixel + pixel,
                   plan.partials.Sum(pixel, channel, shared));
  }
}

inline absl::Status EnqueueStaged(LaunchQueue& queue, const StagedPlan& plan, const WindowSum& sum,
                                  const Source& source, const Source& weight, const WindowResult& result) {
  LaunchShape shape;
  shape.threads = plan.threads();
  shape.blocks_x = static_cast<unsigned>(sum.batch);
  shape.blocks_y = static_cast<unsigned>(plan.bands);
  shape.blocks_z = static_cast<unsigned>(sum.groups * plan.chunks);
  shape.shared_bytes = plan.shared_bytes();
  const auto kernel = plan.kernel_width % 5 == 0   ? &StagedWindowSumKernel<5>
                      : plan.kernel_width % 3 == 0 ? &StagedWindowSumKernel<3>
                                                   : &StagedWindowSumKernel<1>;
  return launch(queue, kernel, shape, plan, source, weight, result);
}

}  // namespace mpc::cuda
