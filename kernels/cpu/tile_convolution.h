// conv2d and its gradients for bf16 by our own loops on tiles (AMX).
#pragma once

#include <memory>

#include "kernels/cpu/convolution_shape.h"
#include "kernels/cpu/kernel.h"

namespace mpc::cpu {

/// Whether conv2d may be computed on tiles. The processor has them. Images and weight are bf16 and not packed, images
/// are channels-last, and there are no groups. Channels of sums fill tiles, those of results fill panels.
bool MayConvolveOnTiles(const KernelSpec& spec, const ConvolutionShape& shape);
/// The same of the gradient by the input. Its windows have stride 1, and padding is less than a window.
bool MayGradInputOnTiles(const KernelSpec& spec, const ConvolutionShape& shape);
/// The same of the gradient by the weight, where all channels fill panels.
bool MayGradWeightOnTiles(const KernelSpec& spec, const ConvolutionShape& shape);

/// Whether y or the gradient by the input is faster on tiles than by the library: few pixels and a large weight. Far
/// fewer pixels than were measured are left to the library.
/// docs/cpu.md has what was measured.
bool AreImagesFasterOnTiles(const ConvolutionShape& shape);
/// The same of the gradient by the weight: many channels, and pixels of which copies are small.
bool IsWeightFasterOnTiles(const ConvolutionShape& shape);

/// The kernels where they may be computed on tiles. `shape` is that of the convolution.
std::unique_ptr<Kernel> MakeTileConv2d(const KernelSpec& spec, const ConvolutionShape& shape);
std::unique_ptr<Kernel> MakeTileConv2dGradInput(const KernelSpec& spec, const ConvolutionShape& shape);
std::unique_ptr<Kernel> MakeTileConv2dGradWeight(const KernelSpec& spec, const ConvolutionShape& shape);

}  // namespace mpc::cpu
