#include "kernels/convolution_part.h"

#include <utility>

#include "kernels/known_attributes.h"
#include "kernels/window.h"

namespace mpc {

absl::StatusOr<ConvolutionPart> ConvolutionPartOf(const KernelSpec& spec) {
  ConvolutionPart part{
      {"conv2d", spec.inputs, {spec.outputs[0]}, {}, spec.attributes, spec.weight_layout, spec.weight_choice}, 0};
  if (spec.uses(0)) return part;
  const TensorSpec& x = spec.inputs[0];
  const TensorSpec& weight = spec.inputs[1];
  const ImageAxes axes = AxesOf(spec.attributes.Get(attribute::kDataFormat));
  const auto height = static_cast<std::size_t>(axes.height), width = static_cast<std::size_t>(axes.width);
  const absl::StatusOr<Window> window =
      ResolveWindow(spec.attributes, {x.shape[height], x.shape[width]}, {weight.shape[2], weight.shape[3]});
  if (!window.ok()) return window.status();
  TensorSpec y{x.dtype == weight.dtype ? x.dtype : DType::kF32, x.shape};
  y.shape[static_cast<std::size_t>(axes.channel)] = weight.shape[0];
  y.shape[height] = window->output[0];
  y.shape[width] = window->output[1];
  constexpr std::size_t kAlignment = 256;
  part.kept_bytes = (y.bytes() + kAlignment - 1) / kAlignment * kAlignment;
  part.convolution.outputs = {std::move(y)};
  return part;
}

}  // namespace mpc
