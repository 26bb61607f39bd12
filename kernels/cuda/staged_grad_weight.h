// The derivative of a small convolution by its weight, from operands in shared memory. A block takes some of the source
// channels, eight results and parts of the images. A thread keeps two terms of the window for the eight results. Slices
// of threads share the positions. Sums of slices, then of blocks, are added in order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/split_product.h"
#include "kernels/cuda/staged_image.h"

namespace mpc::cuda {

/// How the derivative is dealt out. A unit is a band of one image's result pixels.
struct StagedGradPlan {
  StagedImage image;
  StagedPartials partials;  ///< places are pairs of terms, parts are slices
  int bands, band_pixels, slice_pixels;
  int parts;  ///< blocks that share the units
  int chunks, source_chunks;
  int results, sources, terms;  ///< results of a group; sources and terms of a block
  int pixels, kernel_width;
  std::int64_t units, cotangent_stride;    ///< elements of an image of dy
  int cotangent_channel, cotangent_pixel;  ///< strides of dy
  FastDivisor places, result_width, taps, columns, by_terms, by_band;
  ProductShape product;

  std::size_t shared_bytes() const {
    const std::int64_t operands = static_cast<std::int64_t>(band_pixels) * kStagedChannels + image.elements();
    return static_cast<std::size_t>(std::max<std::int64_t>(operands, partials.elements())) * sizeof(float);
  }
  unsigned threads() const {
    return static_cast<unsigned>((partials.places * partials.parts + kWarpSize - 1) / kWarpSize * kWarpSize);
  }
  std::int64_t sets() const { return product.batch * chunks * source_chunks; }
  std::size_t workspace_bytes() const { return static_cast<std::size_t>(parts * product.elements()) * sizeof(float); }
};

/// Cuts source channels, then images, until there are blocks for most multiprocessors.
inline void DivideGradWeight(const Target& target, const WindowSum& sum, StagedGradPlan& plan) {
  constexpr int kFewestTerms = 64;
  constexpr int kFewestPixels = 64;
  const auto next_cut = [&] {
    for (int cut = plan.source_chunks + 1; sum.sources / cut * sum.taps() >= kFewestTerms; ++cut) {
      if (sum.sources % cut == 0) return cut;
    }
    return plan.source_chunks;
  };
  plan.source_chunks = plan.bands = 1;
  while (4 * sum.batch * plan.bands * plan.sets() < 3 * static_cast<std::int64_t>(target.multiprocessors)) {
    const int cut = next_cut();
    if (cut > plan.source_chunks) {
      plan.source_chunks = cut;
    } else if (plan.pixels / (plan.bands + 1) >= kFewestPixels) {
      ++plan.bands;
    } else {
      return;
    }
  }
}

/// None: the operands of a block do not fit shared memory, or its results would be mostly empty. `sum` is that of the
/// convolution, `product` has the derivative's extents.
inline std::optional<StagedGradPlan> PlanStagedGrad(const Target& target, std::size_t workspace_cap,
                                                    const WindowSum& sum, const ProductShape& product) {
  constexpr int kFewestPixels = 16;
  constexpr std::int64_t kMostBlocks = 65535;
  if (!CanStage(sum) || sum.results <= kStagedChannels / 2) return std::nullopt;
  StagedGradPlan plan{};
  plan.product = product;
  plan.chunks = (sum.results + kStagedChannels - 1) / kStagedChannels;
  plan.results = sum.results;
  plan.pixels = sum.result.pixels;
  plan.kernel_width = sum.kernel_width;
  plan.cotangent_stride = sum.result.batch_stride;
  plan.cotangent_channel = static_cast<int>(sum.result.channel_stride);
  plan.cotangent_pixel = static_cast<int>(sum.result.pixel_stride);
  DivideGradWeight(target, sum, plan);
  plan.sources = sum.sources / plan.source_chunks;
  const std::int64_t terms = static_cast<std::int64_t>(plan.sources) * sum.taps();
  if (terms > kStagedNeighbours * kStagedThreads || plan.sets() > kMostBlocks) return std::nullopt;
  plan.terms = static_cast<int>(terms);
  const int places = (plan.terms + kStagedNeighbours - 1) / kStagedNeighbours;
  plan.places = FastDivisor::Create(places);
  plan.result_width = FastDivisor::Create(sum.result_width);
  plan.taps = FastDivisor::Create(sum.taps());
  plan.columns = FastDivisor::Create(sum.kernel_width);
  plan.by_terms = FastDivisor::Create(plan.terms);
  for (int bands = plan.bands;; ++bands) {
    plan.band_pixels = (plan.pixels + bands - 1) / bands;
    plan.bands = (plan.pixels + plan.band_pixels - 1) / plan.band_pixels;
    if (bands > 1 && plan.band_pixels < kFewestPixels) return std::nullopt;
    plan.by_band = FastDivisor::Create(plan.band_pixels);
    plan.image = StagedImage::Create(sum, plan.sources, plan.band_pixels);
    plan.partials = {places, EvenParts(plan.band_pixels, kStagedThreads / places)};
    plan.slice_pixels = (plan.band_pixels + plan.partials.parts - 1) / plan.partials.parts;
    if (plan.shared_bytes() <= kStagedBytes) break;
  }
  plan.units = static_cast<std::int64_t>(sum.batch) * plan.bands;
  const auto fitting =
      static_cast<std::int64_t>(workspace_cap / sizeof(float)) / std::max<std::int64_t>(1, product.elements());
  const std::int64_t wanted = 2 * static_cast<std::int64_t>(target.multiprocessors) / plan.sets();
  plan.parts = static_cast<int>(std::max<std::int64_t>(1, std::min({wanted, plan.units, fitting})));
  return plan;
}

/// The cotangents of a band's pixels for a block's results: [pixel][result].
struct StagedCotangents {
  const StagedGradPlan& plan;
  Source source;
  std::int64_t base;
  int results, pixels;

  __device__ __forceinline__ int count() const { return plan.band_pixels * kStagedChannels; }
  __device__ __forceinline__ void Locate(int e, int& from, int& to) const {
    const bool channels_last = plan.cotangent_channel == 1;
    const int result = channels_last ? e % kStagedChannels : plan.by_band.Quotient(e);
    const int pixel = channels_last ? e / kStagedChannels : e - result * plan.band_pixels;
    const bool inside = result < results && pixel < pixels;
    from = inside ? result * plan.cotangent_channel + pixel * plan.cotangent_pixel : -1;
    to = pixel * kStagedChannels + result;
  }
};

/// The staged element, relative to that of a pixel's first tap, that term `term` of the window reads.
__device__ __forceinline__ int StagedTerm(const StagedGradPlan& plan, int term) {
  const int source = plan.taps.Quotient(term);
  const int tap = term - source * plan.taps.divisor;
  const int row = plan.columns.Quotient(tap);
  return source * plan.image.plane + row * plan.image.row_step +
         (tap - row * plan.kernel_width) * plan.image.column_step;
}

/// Adds the products of the pixels [begin, end) of a band, whose operands are in shared memory.
__device__ __forceinline__ void AccumulatePixels(const StagedGradPlan& plan, const float* image, const Quad* cotangents,
                                                 const int (&terms)[kStagedNeighbours], int first_pixel, int begin,
                                                 int end, float (&sums)[kStagedSums]) {
  const int width = plan.result_width.divisor;
  const int row = plan.result_width.Quotient(first_pixel + begin);
  int column = first_pixel + begin - row * width;
  int base = plan.image.At(row, column, plan.result_width.Quotient(first_pixel));
  const int next_row = plan.image.row_scale * plan.image.columns - width * plan.image.column_scale;
#pragma unroll 2
  for (int p = begin; p < end; ++p) {
    const float values[kStagedNeighbours] = {image[terms[0] + base], image[terms[1] + base]};
    AddOuterProduct(values, cotangents + p * (kStagedChannels / 4), sums);
    const bool last = ++column == width;
    base += plan.image.column_scale + (last ? next_row : 0);
    column = last ? 0 : column;
  }
}

/// partials[part, group, result, term]. Block (part, set).
inline __global__ void __launch_bounds__(kStagedThreads, 2)
    StagedGradWeightKernel(StagedGradPlan plan, Source x, Source dy, float* partials) {
  AwaitEarlierLaunches();
  float* const shared = dynamic_shared<float>();
  float* const image = shared + plan.band_pixels * kStagedChannels;
  const int source_chunk = static_cast<int>(blockIdx.y) % plan.source_chunks;
  const int of_results = static_cast<int>(blockIdx.y) / plan.source_chunks;
  const int group = of_results / plan.chunks;
  const int first_result = (of_results - group * plan.chunks) * kStagedChannels;
  const int thread = static_cast<int>(threadIdx.x);
  const int slice = plan.places.Quotient(thread);
  const int place = thread - slice * plan.partials.places;
  int terms[kStagedNeighbours];
#pragma unroll
  for (int n = 0; n < kStagedNeighbours; ++n) {
    const int term = place + n * plan.partials.places;
    terms[n] = StagedTerm(plan, term < plan.terms ? term : 0);
  }
  // ---- Sums of the thread, unit by unit
  float sums[kStagedSums] = {};
  const std::int64_t first_unit = plan.units * blockIdx.x / plan.parts;
  const std::int64_t last_unit = plan.units * (blockIdx.x + 1) / plan.parts;
  for (std::int64_t unit = first_unit; unit < last_unit; ++unit) {
    const std::int64_t batch = unit / plan.bands;
    const int first_pixel = static_cast<int>(unit - batch * plan.bands) * plan.band_pixels;
    const int room = plan.pixels - first_pixel;
    const int count = room < plan.band_pixels ? room : plan.band_pixels;
    const std::int64_t x_base =
        batch * plan.image.batch_stride + (static_cast<std::int64_t>(group) * plan.source_chunks + source_chunk) *
                                              plan.sources * plan.image.channel_stride;
    const std::int64_t dy_base =
        batch * plan.cotangent_stride +
        (static_cast<std::int64_t>(group) * plan.results + first_result) * plan.cotangent_channel +
        static_cast<std::int64_t>(first_pixel) * plan.cotangent_pixel;
    __syncthreads();
    StageBoth(StagedCotangents{plan, dy, dy_base, plan.results - first_result, count},
              ImageElements{plan.image, x, x_base, plan.result_width.Quotient(first_pixel)}, shared, image);
    __syncthreads();
    const int begin = slice * plan.slice_pixels;
    const int end = begin + plan.slice_pixels < count ? begin + plan.slice_pixels : count;
    if (begin < end && slice < plan.partials.parts) {
      AccumulatePixels(plan, image, reinterpret_cast<const Quad*>(shared), terms, first_pixel, begin, end, sums);
    }
  }
  // ---- Sums of all slices. The operands' place is used again.
  __syncthreads();
  if (slice < plan.partials.parts) plan.partials.Store(sums, slice, place, shared);
  __syncthreads();
  const std::int64_t first_row =
      (static_cast<std::int64_t>(blockIdx.x) * plan.product.batch + group) * plan.product.rows + first_result;
  for (int e = thread; e < plan.terms * kStagedChannels; e += static_cast<int>(blockDim.x)) {
    const int channel = plan.by_terms.Quotient(e);
    const int term = e - channel * plan.terms;
    if (first_result + channel >= plan.results) continue;
    partials[(first_row + channel) * plan.product.columns + source_chunk * plan.terms + term] =
        plan.partials.Sum(term, channel, shared);
  }
}

/// `workspace` has plan.workspace_bytes().
template <typename Result>
absl::Status EnqueueStagedGrad(LaunchQueue& queue, const StagedGradPlan& plan, const Source& x, const Source& dy,
                               const Result& result, void* workspace) {
  LaunchShape shape;
  shape.threads = plan.threads();
  shape.blocks_x = static_cast<unsigned>(plan.parts);
  shape.blocks_y = static_cast<unsigned>(plan.sets());
  shape.shared_bytes = plan.shared_bytes();
  auto* const partials = static_cast<float*>(workspace);
  if (absl::Status status = launch(queue, &StagedGradWeightKernel, shape, plan, x, dy, partials); !status.ok()) {
    return status;
  }
  return SumPartials(queue, partials, plan.parts, result, plan.product);
}

}  // namespace mpc::cuda
