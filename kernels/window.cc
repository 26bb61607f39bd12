#include "kernels/window.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/attribute_words.h"
#include "kernels/known_attributes.h"

namespace mpc {

namespace {

/// The attributes of a window, with their defaults filled in.
struct WindowAttributes {
  std::vector<std::int64_t> strides;    ///< [height, width]
  std::vector<std::int64_t> dilations;  ///< [height, width]
  std::vector<std::int64_t> padding;    ///< [top, bottom, left, right]
  PadMode mode;
};

absl::StatusOr<WindowAttributes> ReadAttributes(const Attributes& attributes) {
  const absl::StatusOr<PadMode> mode = ReadWord(attributes, attribute::kPadMode);
  if (!mode.ok()) return mode.status();
  WindowAttributes read = {attributes.Get(attribute::kStrides), attributes.Get(attribute::kDilations),
                           attributes.Get(attribute::kPadding), *mode};
  if (read.strides.size() != 2 || read.dilations.size() != 2 || read.padding.size() != 4) {
    return absl::InvalidArgumentError(
        absl::StrCat("strides and dilations take [height, width], padding takes [top, bottom, left, right]; got ",
                     read.strides.size(), ", ", read.dilations.size(), " and ", read.padding.size(), " values"));
  }
  const bool pads = std::any_of(read.padding.begin(), read.padding.end(), [](std::int64_t p) { return p != 0; });
  if (read.mode != PadMode::kPad && pads) {
    return absl::InvalidArgumentError(absl::StrCat("explicit padding needs pad_mode = \"pad\"; got pad_mode = \"",
                                                   std::string(NameOf(read.mode)), "\""));
  }
  return read;
}

// Within these bounds no sum or product below leaves 64 bits.
absl::Status CheckSizes(const WindowAttributes& attributes, std::array<std::int64_t, 2> input,
                        std::array<std::int64_t, 2> kernel) {
  static constexpr std::int64_t kLargest = std::numeric_limits<std::int32_t>::max();
  const std::vector<std::int64_t> inputs(input.begin(), input.end()), kernels(kernel.begin(), kernel.end());
  for (const auto* values : {&attributes.strides, &attributes.dilations, &attributes.padding, &inputs, &kernels}) {
    const auto large =
        std::find_if(values->begin(), values->end(), [](std::int64_t value) { return value > kLargest; });
    if (large == values->end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("input, kernel, stride, dilation and padding must be at most ", kLargest, "; got ", *large));
  }
  return absl::OkStatus();
}

/// The padding in front of the elements of an axis and behind them.
struct AxisPadding {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// `effective` is the extent of the kernel with its dilation. "same" divides what is missing in halves, the larger one
// behind.
AxisPadding PaddingOf(const WindowAttributes& attributes, std::size_t axis, std::int64_t input,
                      std::int64_t effective) {
  if (attributes.mode == PadMode::kPad) return {attributes.padding[2 * axis], attributes.padding[2 * axis + 1]};
  if (attributes.mode == PadMode::kValid) return {};
  const std::int64_t stride = attributes.strides[axis];
  const std::int64_t output = (input + stride - 1) / stride;
  const std::int64_t total = std::max<std::int64_t>(0, (output - 1) * stride + effective - input);
  return {total / 2, total - total / 2};
}

absl::Status ResolveAxis(const WindowAttributes& attributes, std::size_t axis, std::int64_t input, std::int64_t kernel,
                         Window& window) {
  static constexpr std::array<const char*, 2> kAxisName = {"height", "width"};
  const std::int64_t stride = attributes.strides[axis];
  const std::int64_t dilation = attributes.dilations[axis];
  if (stride < 1 || dilation < 1 || kernel < 1 || input < 1) {
    return absl::InvalidArgumentError(absl::StrCat("input, kernel, stride and dilation must be at least 1; got input ",
                                                   input, ", kernel ", kernel, ", stride ", stride, ", dilation ",
                                                   dilation, " along ", kAxisName[axis]));
  }
  const std::int64_t effective = (kernel - 1) * dilation + 1;
  const AxisPadding padding = PaddingOf(attributes, axis, input, effective);
  if (padding.begin < 0 || padding.end < 0) {
    return absl::InvalidArgumentError(absl::StrCat("padding must not be negative; got ", padding.begin, " and ",
                                                   padding.end, " along ", kAxisName[axis]));
  }
  const std::int64_t padded = input + padding.begin + padding.end;
  if (effective > padded) {
    return absl::InvalidArgumentError(
        absl::StrCat("a window of ", effective, " does not fit the padded ", kAxisName[axis], " of ", padded));
  }
  window.kernel[axis] = kernel;
  window.stride[axis] = stride;
  window.dilation[axis] = dilation;
  window.pad_begin[axis] = padding.begin;
  window.pad_end[axis] = padding.end;
  window.input[axis] = input;
  window.output[axis] = (padded - effective) / stride + 1;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Window> ResolveWindow(const Attributes& attributes, std::array<std::int64_t, 2> input,
                                     std::array<std::int64_t, 2> kernel) {
  const absl::StatusOr<WindowAttributes> read = ReadAttributes(attributes);
  if (!read.ok()) return read.status();
  if (absl::Status status = CheckSizes(*read, input, kernel); !status.ok()) return status;
  Window window;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    if (absl::Status status = ResolveAxis(*read, axis, input[axis], kernel[axis], window); !status.ok()) return status;
  }
  return window;
}

}  // namespace mpc
