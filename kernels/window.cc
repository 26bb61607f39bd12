#include "kernels/window.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc {

absl::StatusOr<Window> ResolveWindow(const Attributes& attributes, std::array<std::int64_t, 2> input,
                                     std::array<std::int64_t, 2> kernel) {
  static constexpr std::array<const char*, 2> kAxisName = {"height", "width"};
  const std::vector<std::int64_t> strides = attributes.GetInts("strides", {1, 1});
  const std::vector<std::int64_t> dilations = attributes.GetInts("dilations", {1, 1});
  const std::vector<std::int64_t> padding = attributes.GetInts("padding", {0, 0, 0, 0});
  const std::string mode = attributes.GetString("pad_mode", "valid");
  if (strides.size() != 2 || dilations.size() != 2 || padding.size() != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("strides and dilations take [height, width], padding takes [top, bottom, left, right]; got ",
                     strides.size(), ", ", dilations.size(), " and ", padding.size(), " values"));
  }
  if (mode != "valid" && mode != "same" && mode != "pad") {
    return absl::InvalidArgumentError(
        absl::StrCat("pad_mode is one of \"same\", \"valid\", \"pad\"; got \"", mode, "\""));
  }
  if (mode != "pad" && std::any_of(padding.begin(), padding.end(), [](std::int64_t p) { return p != 0; })) {
    return absl::InvalidArgumentError(
        absl::StrCat("explicit padding needs pad_mode = \"pad\"; got pad_mode = \"", mode, "\""));
  }
  // Within these bounds no sum or product below leaves 64 bits.
  static constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  for (const auto& values :
       {strides, dilations, padding, {input.begin(), input.end()}, {kernel.begin(), kernel.end()}}) {
    const auto large = std::find_if(values.begin(), values.end(), [](std::int64_t value) { return value > kLargest; });
    if (large != values.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("input, kernel, stride, dilation and padding must be at most ", kLargest, "; got ", *large));
    }
  }
  Window window;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t stride = strides[axis];
    const std::int64_t dilation = dilations[axis];
    if (stride < 1 || dilation < 1 || kernel[axis] < 1 || input[axis] < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("input, kernel, stride and dilation must be at least 1; got input ", input[axis], ", kernel ",
                       kernel[axis], ", stride ", stride, ", dilation ", dilation, " along ", kAxisName[axis]));
    }
    const std::int64_t effective = (kernel[axis] - 1) * dilation + 1;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    if (mode == "pad") {
      begin = padding[2 * axis];
      end = padding[2 * axis + 1];
      if (begin < 0 || end < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("padding must not be negative; got ", begin, " and ", end, " along ", kAxisName[axis]));
      }
    } else if (mode == "same") {
      const std::int64_t output = (input[axis] + stride - 1) / stride;
      const std::int64_t total = std::max<std::int64_t>(0, (output - 1) * stride + effective - input[axis]);
      begin = total / 2;
      end = total - begin;
    }
    const std::int64_t padded = input[axis] + begin + end;
    if (effective > padded) {
      return absl::InvalidArgumentError(
          absl::StrCat("a window of ", effective, " does not fit the padded ", kAxisName[axis], " of ", padded));
    }
    window.kernel[axis] = kernel[axis];
    window.stride[axis] = stride;
    window.dilation[axis] = dilation;
    window.pad_begin[axis] = begin;
    window.pad_end[axis] = end;
    window.input[axis] = input[axis];
    window.output[axis] = (padded - effective) / stride + 1;
  }
  return window;
}

}  // namespace mpc
