#include "kernels/cpu/convolution_shape.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/known_attributes.h"
#include "kernels/window.h"

namespace mpc::cpu {

using dnnl::memory;

bool ConvolutionShape::SuitsWinograd() const {
  const bool slides_by_one = strides == memory::dims{1, 1} && dilations == memory::dims{0, 0};
  const bool is_3x3 = weight.size() == 4 && weight[2] == 3 && weight[3] == 3;
  return is_3x3 && slides_by_one && x[1] >= 32 && y[1] >= 32;
}

bool ConvolutionShape::IsProduct() const {
  const memory::dims none{0, 0};
  const bool is_1x1 = weight.size() == 4 && weight[2] == 1 && weight[3] == 1;
  return is_1x1 && stored_layout == FormatTag::nhwc && strides == memory::dims{1, 1} && pad_begin == none &&
         pad_end == none;
}

bool ConvolutionShape::IsDeep() const { return weight.size() == 4 && x[1] >= 256 && y[2] * y[3] <= 64; }

std::int64_t ConvolutionShape::FirstRowOf(std::int64_t row) const {
  return std::max<std::int64_t>(0, row * strides[0] - pad_begin[0]);
}

ConvolutionShape ConvolutionShape::Rows(std::int64_t row, std::int64_t count) const {
  const std::int64_t begin = row * strides[0] - pad_begin[0];  // above the image where it is negative
  const std::int64_t end = begin + (count - 1) * strides[0] + window_rows();
  const std::int64_t first = FirstRowOf(row), last = std::min(end, x[2]);
  ConvolutionShape part = *this;
  part.x[0] = part.y[0] = 1;
  part.x[2] = last - first;
  part.y[2] = count;
  part.pad_begin[0] = first - begin;
  part.pad_end[0] = end - last;
  return part;
}

std::int64_t ConvolutionShape::FirstRowOfYFor(std::int64_t row) const {
  const std::int64_t first = row + pad_begin[0] - window_rows() + 1;  // where the window begins at the earliest
  return first <= 0 ? 0 : (first + strides[0] - 1) / strides[0];
}

std::optional<ConvolutionShape> ConvolutionShape::RowsOfX(std::int64_t row, std::int64_t count) const {
  const std::int64_t first = FirstRowOfYFor(row);
  const std::int64_t last = std::min((row + count - 1 + pad_begin[0]) / strides[0], y[2] - 1);
  const std::int64_t begin = row + pad_begin[0] - first * strides[0];
  const std::int64_t end = (last - first) * strides[0] + window_rows() - begin - count;
  // Fewer rows than a stride behind the last window are as in any convolution.
  if (last < first || begin < 0 || end <= -strides[0]) return std::nullopt;
  ConvolutionShape part = *this;
  part.x[0] = part.y[0] = 1;
  part.x[2] = count;
  part.y[2] = last - first + 1;
  part.pad_begin[0] = begin;
  part.pad_end[0] = std::max<std::int64_t>(0, end);
  return part;
}

std::int64_t ConvolutionShape::weight_elements() const {
  return std::accumulate(weight.begin(), weight.end(), std::int64_t{1}, std::multiplies<>());
}

namespace {

/// Why the channels of x and of the weight are not those of a convolution in groups. Empty where they are.
absl::string_view ProblemOfChannels(std::int64_t in_channels, const Shape& weight, std::int64_t groups) {
  if (in_channels < 1 || weight[0] < 1 || groups < 1) return "every extent is at least 1";
  if (in_channels % groups != 0 || weight[0] % groups != 0 || weight[1] != in_channels / groups) {
    return "weight is [O, C / groups, kh, kw] with groups dividing O and C";
  }
  return "";
}

/// Whether `y` is an image of `batch` rows, with these channels and the window's extents.
bool IsResult(const Shape& y, const ImageAxes& axes, std::int64_t batch, std::int64_t channels, const Window& window) {
  return y[axes.batch] == batch && y[axes.channel] == channels && y[axes.height] == window.output[0] &&
         y[axes.width] == window.output[1];
}

}  // namespace

absl::StatusOr<ConvolutionShape> ConvolutionShape::Create(const KernelSpec& spec, const Shape& x, const Shape& weight,
                                                          const Shape& y) {
  const DataFormat format = spec.attributes.Get(attribute::kDataFormat);
  const std::int64_t groups = spec.attributes.Get(attribute::kGroups);
  const auto invalid = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat(spec.name, ": ", problem, "; x is ", ShapeToString(x), " (",
                                                   std::string(NameOf(format)), "), weight ", ShapeToString(weight),
                                                   ", y ", ShapeToString(y), ", groups ", groups));
  };
  if (x.size() != 4 || weight.size() != 4 || y.size() != 4) return invalid("x, weight and y have rank 4");
  const ImageAxes axes = AxesOf(format);
  const std::int64_t batch = x[axes.batch];
  const std::int64_t in_channels = x[axes.channel];
  const std::int64_t out_channels = weight[0];
  if (batch < 1) return invalid("every extent is at least 1");
  if (const absl::string_view problem = ProblemOfChannels(in_channels, weight, groups); !problem.empty()) {
    return invalid(problem);
  }
  absl::StatusOr<Window> window =
      ResolveWindow(spec.attributes, {x[axes.height], x[axes.width]}, {weight[2], weight[3]});
  if (!window.ok()) return invalid(window.status().message());
  if (!IsResult(y, axes, batch, out_channels, *window)) {
    return invalid(absl::StrCat("y has ", out_channels, " channels of ", window->output[0], "x", window->output[1]));
  }
  ConvolutionShape shape;
  shape.x = {batch, in_channels, window->input[0], window->input[1]};
  shape.y = {batch, out_channels, window->output[0], window->output[1]};
  shape.weight = groups == 1 ? memory::dims{out_channels, in_channels, weight[2], weight[3]}
                             : memory::dims{groups, out_channels / groups, in_channels / groups, weight[2], weight[3]};
  shape.bias = {out_channels};
  shape.strides = {window->stride[0], window->stride[1]};
  shape.dilations = {window->dilation[0] - 1, window->dilation[1] - 1};
  shape.pad_begin = {window->pad_begin[0], window->pad_begin[1]};
  shape.pad_end = {window->pad_end[0], window->pad_end[1]};
  shape.stored_layout = format == DataFormat::kNHWC ? FormatTag::nhwc : FormatTag::nchw;
  shape.weight_layout = groups == 1 ? FormatTag::oihw : FormatTag::goihw;
  return shape;
}

}  // namespace mpc::cpu
