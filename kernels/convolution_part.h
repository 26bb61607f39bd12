// The convolution within conv2d_statistics.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/kernel_spec.h"

namespace mpc {

struct ConvolutionPart {
  KernelSpec convolution;  ///< conv2d with all inputs, attributes and the packed weight of the whole
  /// Bytes of an unused y, a multiple of 256; 0 where y is a result. Kernels keep it at the beginning of their
  /// workspace, in front of the convolution's own.
  std::size_t kept_bytes;
  const TensorSpec& y() const { return convolution.outputs[0]; }
};

/// The convolution within `spec`, which is conv2d_statistics. Errors: INVALID_ARGUMENT for a window that does not fit,
/// which is checked only where y is unused. An unused y has the operands' type if they agree, else f32.
absl::StatusOr<ConvolutionPart> ConvolutionPartOf(const KernelSpec& spec);

}  // namespace mpc
