// The convolution within conv2d_statistics.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "kernels/kernel_spec.h"

namespace mpc {

struct ConvolutionPart {
  KernelSpec convolution;  ///< conv2d
  std::size_t kept_bytes;  ///< of y where nothing uses it, for the workspace, a multiple of 256; 0: y is a result
  const TensorSpec& y() const { return convolution.outputs[0]; }
};

/// Of conv2d_statistics. Errors: INVALID_ARGUMENT for a window that does not fit.
absl::StatusOr<ConvolutionPart> ConvolutionPartOf(const KernelSpec& spec);

}  // namespace mpc
