// The gradient of a convolution by its weight in f32, by products of our own (term_products.h).
#pragma once

#include <memory>

#include "kernels/cpu/convolution_shape.h"
#include "kernels/cpu/kernel.h"

namespace mpc::cpu {

/// Whether the gradient by the weight may be computed in panels. The processor multiplies f32 in them
/// (MultipliesFloats). Images are channels-last, without groups, and of types that the processor multiplies in f32. Any
/// window, stride, dilation and padding will do.
bool MayGradWeightInPanels(const KernelSpec& spec, const ConvolutionShape& shape);

/// Whether it is faster than by the library: several taps, many channels and pixels, and panels that are nearly full.
/// docs/cpu.md has what was measured.
bool IsWeightFasterInPanels(const ConvolutionShape& shape);

/// The kernel where it may be computed so.
std::unique_ptr<Kernel> MakePanelConv2dGradWeight(const KernelSpec& spec, const ConvolutionShape& shape);

}  // namespace mpc::cpu
