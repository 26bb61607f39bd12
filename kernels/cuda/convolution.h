// What the convolution kernels share: geometry on the host, addresses on the device.
#pragma once

#include <cstdint>

#include "kernels/cuda/registry.h"
#include "kernels/cuda/storage.h"
#include "kernels/window.h"

namespace mpc::cuda {

/// Strides of an activation in either data format; a pixel is row * width + column.
struct ImageLayout {
  std::int64_t batch_stride, channel_stride, pixel_stride;
  int pixels;  ///< pixels of an image

  static ImageLayout Create(bool channels_last, std::int64_t channels, std::int64_t pixels) {
    return {channels * pixels, channels_last ? 1 : pixels, channels_last ? channels : 1, static_cast<int>(pixels)};
  }
};

/// A convolution's extents, validated. Channels are counted for each group. Weights are [groups * results, sources,
/// kernel].
struct ConvolutionShape {
  std::int64_t batch, groups, sources, results;
  Window window;
  ImageLayout x, y;

  std::int64_t taps() const { return window.kernel[0] * window.kernel[1]; }
};

/// Resolves the geometry of x, weight [O, C / groups, kh, kw] and y. Errors: INVALID_ARGUMENT for what does not fit,
/// UNIMPLEMENTED for 2^31 pixels, channels or positions of a window.
absl::StatusOr<ConvolutionShape> ResolveConvolution(const KernelSpec& spec, const Shape& x, const Shape& weight,
                                                    const Shape& y);

/// convolution_grad_weight.cu
absl::StatusOr<std::unique_ptr<Kernel>> CreateConv2dGradWeight(const KernelSpec& spec, const KernelContext& context);

/// Elements at `index`, 0 where that is negative. The loads do not wait for each other.
template <int kCount>
__device__ __forceinline__ void LoadEach(const Source& source, const std::int64_t (&index)[kCount],
                                         float (&values)[kCount]) {
  if (source.dtype == DType::kF32) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      values[i] = index[i] < 0 ? 0.0f : static_cast<const float*>(source.data)[index[i]];
    }
    return;
  }
  std::uint16_t bits[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    bits[i] = index[i] < 0 ? std::uint16_t{0} : static_cast<const std::uint16_t*>(source.data)[index[i]];
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) values[i] = source.Widen(bits[i]);
}

}  // namespace mpc::cuda
