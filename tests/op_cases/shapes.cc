// Result shapes, for cases only: the dialect's shape inference is what is tested elsewhere.
#include <utility>

#include "kernels/window.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {

Shape WindowResultShape(const Attributes& attributes, const Shape& x, std::int64_t kernel_height,
                        std::int64_t kernel_width, std::int64_t channels) {
  const ImageAxes axes = AxesOf(attributes.GetString("data_format", "NCHW"));
  const auto height = static_cast<std::size_t>(axes.height);
  const auto width = static_cast<std::size_t>(axes.width);
  const Window window = ResolveWindow(attributes, {x[height], x[width]}, {kernel_height, kernel_width}).value();
  Shape y = x;
  y[static_cast<std::size_t>(axes.channel)] = channels;
  y[height] = window.output[0];
  y[width] = window.output[1];
  return y;
}

std::vector<Shape> ForwardShapes(const std::string& op, const Attributes& attributes,
                                 const std::vector<reference::Tensor>& inputs) {
  const Shape& x = inputs[0].spec.shape;
  if (op == "max_pool2d") {
    const std::vector<std::int64_t> kernel = attributes.GetInts("kernel_size");
    const ImageAxes axes = AxesOf(attributes.GetString("data_format", "NCHW"));
    const Shape y = WindowResultShape(attributes, x, kernel[0], kernel[1], x[static_cast<std::size_t>(axes.channel)]);
    return {y, y};
  }
  if (op == "batch_norm_train") {
    const Shape& channels = inputs[1].spec.shape;
    return {x, channels, channels, channels};
  }
  if (op == "softmax_cross_entropy") {
    const bool kept = attributes.GetString("reduction", "mean") == "none";
    return {kept ? Shape{x[0]} : Shape{}, {x[0]}};
  }
  return {x};  // element-wise and softmax operations
}

Attributes With(Attributes attributes, const Attributes& more) {
  for (const Attributes::Entry& entry : more.entries()) attributes.Set(entry.first, entry.second);
  return attributes;
}

}  // namespace mpc::op_cases
