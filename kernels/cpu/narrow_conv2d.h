// Convolutions with few channels, which leave most lanes of a library's vectors empty: channels-last, stride 1. Results
// of several pixels share a vector, in y (narrow_conv2d.cc) and, for the weights' gradient, in dy
// (narrow_conv2d_grad_weight.cc). The gradient of x takes a window's row, columns times channels, as one run
// (narrow_conv2d_grad_input.cc). Storage of any floating type; f32 inside, rounded once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "kernels/cpu/kernel.h"
#include "kernels/window.h"

namespace mpc::cpu {

/// A convolution that the kernels here can compute.
struct NarrowConvolution {
  std::int64_t batch = 0, in_channels = 0, out_channels = 0;
  Window window;

  /// The convolution of x [N, H, W, C], weight [O, C, kh, kw] and y, if it is channels-last without groups, strides and
  /// dilation. None on processors without AVX2 and for a window that does not fit. The number of channels is not
  /// looked at here.
  static std::optional<NarrowConvolution> Create(const Attributes& attributes, const Shape& x, const Shape& weight);

  /// Whether y, dx or dweight can be computed here, and better than by the library. Channels, windows and rows are
  /// limited. `bf16_products` says that the library multiplies in bf16.
  bool TakesForward(bool bf16_products) const;
  bool TakesGradInput(bool bf16_products) const;
  bool TakesGradWeight(bool bf16_products) const;
};

/// conv2d, with its bias and activation, conv2d_grad_input and conv2d_grad_weight of operands that have been checked.
/// The matching Takes... must have returned true. The result is never null.
std::unique_ptr<Kernel> MakeNarrowConv2d(const KernelSpec& spec, const NarrowConvolution& convolution);
std::unique_ptr<Kernel> MakeNarrowConv2dGradInput(const KernelSpec& spec, const NarrowConvolution& convolution);
std::unique_ptr<Kernel> MakeNarrowConv2dGradWeight(const KernelSpec& spec, const NarrowConvolution& convolution);

}  // namespace mpc::cpu
