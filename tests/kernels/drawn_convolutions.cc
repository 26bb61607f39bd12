#include "tests/kernels/drawn_convolutions.h"

#include "absl/strings/str_cat.h"
#include "kernels/window.h"

namespace mpc::test {

using op_cases::OpCase;
using op_cases::Variable;

namespace {

/// How windows are placed, in images `scale` times as large as most: strides, dilations and padding.
void DrawWindows(Draws& draws, std::int64_t scale, DrawnConvolution& shape) {
  const bool pointwise = draws.OneIn(2);
  shape.kernel_height = pointwise ? 1 : draws.Between(1, 5);
  shape.kernel_width = pointwise ? 1 : draws.Between(1, 5);
  const Ints strides = draws.OneIn(3) ? Ints{1, 1} : Ints{draws.Between(1, 3), draws.Between(1, 3)};
  shape.attributes.Set("strides", strides);
  shape.height = draws.Between(1, 14);
  shape.width = draws.Between(1, 14);
  if (draws.OneIn(2)) {
    // The library gathers the pixels of pointwise windows where strides divide the image.
    shape.height = strides[0] * draws.Between(1, 6);
    shape.width = strides[1] * draws.Between(1, 6);
  }
  shape.height *= scale;
  shape.width *= scale;
  if (!pointwise && draws.OneIn(4)) shape.attributes.Set("dilations", Ints{draws.Between(1, 3), draws.Between(1, 3)});
  const std::string mode = draws.OneOf<std::string>({"valid", "same", "pad"});
  shape.attributes.Set("pad_mode", mode);
  if (mode != "pad") return;
  const std::int64_t rows = pointwise && !draws.OneIn(4) ? 0 : shape.kernel_height - 1;
  const std::int64_t columns = pointwise && !draws.OneIn(4) ? 0 : shape.kernel_width - 1;
  shape.attributes.Set("padding", Ints{draws.Between(0, rows), draws.Between(0, rows), draws.Between(0, columns),
                                       draws.Between(0, columns)});
}

}  // namespace

DrawnConvolution DrawConvolution(Draws& draws, std::int64_t least, std::int64_t most, std::int64_t scale) {
  for (;;) {
    DrawnConvolution shape{};
    shape.attributes.Set("data_format", std::string(draws.OneIn(3) ? "NCHW" : "NHWC"));
    // With parts to cut into, few images have parts of their rows.
    shape.batch = draws.Between(1, least > 0 && !draws.OneIn(4) ? 37 : 6);
    shape.channels = draws.Channels();
    shape.out_channels = draws.Channels();
    if (draws.OneIn(4)) {
      const std::int64_t groups = draws.OneIn(2) ? shape.channels : draws.Between(2, 6);
      shape.channels = groups == shape.channels ? groups : groups * draws.Between(1, 12);
      shape.out_channels = groups * draws.Between(1, groups > 6 ? 2 : 12);
      shape.attributes.Set("groups", groups);
    }
    DrawWindows(draws, scale, shape);
    const auto window =
        ResolveWindow(shape.attributes, {shape.height, shape.width}, {shape.kernel_height, shape.kernel_width});
    if (!window.ok()) continue;  // a window larger than the image
    shape.out_height = window->output[0];
    shape.out_width = window->output[1];
    if (shape.multiply_adds() >= least && shape.multiply_adds() <= most) return shape;
  }
}

OpCase CaseOf(const std::string& op, const DrawnConvolution& shape, bool bias, const std::string& activation) {
  OpCase op_case{.name = op, .op = op, .attributes = shape.attributes, .operands = {}, .results = {}};
  if (op == "conv2d") {
    op_case.operands = {Variable(shape.X()), Variable(shape.Weight())};
    op_case.results = {op_cases::F32(shape.Y())};
    op_case.attributes.Set("activation", activation);
    if (bias) op_case.operands.push_back(Variable({shape.out_channels}));
  } else if (op == "conv2d_grad_weight") {
    op_case.operands = {Variable(shape.X()), Variable(shape.Y())};
    op_case.results = {op_cases::F32(shape.Weight())};
    op_case.attributes.Set("weight_shape", Ints(shape.Weight()));
  } else {
    op_case.operands = {Variable(shape.Y()), Variable(shape.Weight())};
    op_case.results = {op_cases::F32(shape.X())};
    if (op == "conv2d_grad_input") op_case.attributes.Set("input_shape", Ints(shape.X()));
    if (op == "conv_transpose2d" && bias) op_case.operands.push_back(Variable({shape.channels}));
  }
  return op_case;
}

std::string Describe(const OpCase& op_case) {
  std::string text = op_case.op;
  for (const op_cases::OperandCase& operand : op_case.operands) {
    absl::StrAppend(&text, " ", ShapeToString(operand.spec.shape));
  }
  absl::StrAppend(&text, " to ", ShapeToString(op_case.results[0].shape), op_case.attributes.GetString("data_format"));
  for (const char* name : {"strides", "dilations", "padding"}) {
    const Ints values = op_case.attributes.GetInts(name);
    if (!values.empty()) absl::StrAppend(&text, ", ", name, " ", ShapeToString(Shape(values.begin(), values.end())));
  }
  return absl::StrCat(text, ", pad mode ", op_case.attributes.GetString("pad_mode"), ", groups ",
                      op_case.attributes.Get(attribute::kGroups), ", activation ",
                      std::string(NameOf(op_case.attributes.Get(attribute::kActivation))));
}

}  // namespace mpc::test
