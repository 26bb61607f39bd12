// Geometry of convolution and pooling windows, resolved once from `pad_mode` and shared by shape inference and kernels.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/attribute_enums.h"
#include "kernels/attributes.h"
#include "kernels/tensor_spec.h"

namespace mpc {

/// One spatial window over (height, width).
struct Window {
  std::array<std::int64_t, 2> kernel{1, 1};
  std::array<std::int64_t, 2> stride{1, 1};
  std::array<std::int64_t, 2> dilation{1, 1};
  std::array<std::int64_t, 2> pad_begin{0, 0};  ///< top, left
  std::array<std::int64_t, 2> pad_end{0, 0};    ///< bottom, right
  std::array<std::int64_t, 2> input{0, 0};
  std::array<std::int64_t, 2> output{0, 0};
};

/// Resolves the window that `attributes` describe against an input extent and a kernel extent. The attributes are
/// `strides` [h, w], `dilations` [h, w] (absent = 1), `pad_mode` and `padding` [top, bottom, left, right]. `pad_mode`
/// is
///
///   "valid"  no padding, output = floor((in - k_eff) / stride) + 1.
///   "same"   output = ceil(in / stride), the odd padding element goes to the end (MindSpore and TensorFlow).
///   "pad"    the explicit `padding`.
///
/// Errors (INVALID_ARGUMENT): an unknown mode, extents < 1, negative padding, a window larger than the padded input.
absl::StatusOr<Window> ResolveWindow(const Attributes& attributes, std::array<std::int64_t, 2> input,
                                     std::array<std::int64_t, 2> kernel);

/// Axis roles of a rank-4 activation.
struct ImageAxes {
  int batch, channel, height, width;
};
inline ImageAxes AxesOf(DataFormat format) {
  return format == DataFormat::kNHWC ? ImageAxes{0, 3, 1, 2} : ImageAxes{0, 1, 2, 3};
}

}  // namespace mpc
