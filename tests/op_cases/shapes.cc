// Result shapes, for cases only: the dialect's shape inference is what is tested elsewhere.
#include <algorithm>
#include <utility>

#include "kernels/known_attributes.h"
#include "kernels/window.h"
#include "tests/op_cases/families.h"

namespace mpc::op_cases {

Shape WindowResultShape(const Attributes& attributes, const Shape& x, std::int64_t kernel_height,
                        std::int64_t kernel_width, std::int64_t channels) {
  const ImageAxes axes = AxesOf(attributes.Get(attribute::kDataFormat));
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
    const ImageAxes axes = AxesOf(attributes.Get(attribute::kDataFormat));
    const Shape y = WindowResultShape(attributes, x, kernel[0], kernel[1], x[static_cast<std::size_t>(axes.channel)]);
    return {y, y};
  }
  if (op == "batch_norm_train") {
    const Shape& channels = inputs[1].spec.shape;
    return {x, channels, channels, channels};
  }
  if (op == "reduce_max") {
    const std::vector<std::int64_t> axes = attributes.GetInts("axes");
    Shape y;
    for (std::size_t axis = 0; axis < x.size(); ++axis) {
      const bool reduced =
          axes.empty() || std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
      if (!reduced || attributes.GetBool("keep_dims")) y.push_back(reduced ? 1 : x[axis]);
    }
    return {y};
  }
  if (op == "attention") {
    const Shape& value = inputs[2].spec.shape;
    return {{x[0], x[1], x[2], value[3]}, {x[0], x[1], x[2]}};
  }
  if (op == "packed_attention") return {{x[0], x[1], x[2] / 3}, {x[0], attributes.GetInt("heads"), x[1]}};
  if (op == "layer_norm") {
    const Shape rows(x.begin(), x.end() - static_cast<std::ptrdiff_t>(inputs[1].spec.shape.size()));
    return {x, rows, rows};
  }
  if (op == "group_norm") {
    const Shape statistics = {x[0], attributes.Get(attribute::kGroups)};
    return {x, statistics, statistics};
  }
  if (op == "lstm_cell") {
    const Shape& state = inputs[1].spec.shape;
    return {state, state, x};
  }
  if (op == "softmax_cross_entropy") {
    const bool kept = attributes.Get(attribute::kReduction) == LossReduction::kNone;
    return {kept ? Shape{x[0]} : Shape{}, {x[0]}};
  }
  return {x};  // element-wise and softmax operations
}

Attributes With(Attributes attributes, const Attributes& more) {
  for (const Attributes::Entry& entry : more.entries()) attributes.Set(entry.first, entry.second);
  return attributes;
}

OpCase OfType(OpCase op_case, DType dtype) {
  op_case.name += "_" + std::string(DTypeName(dtype));
  op_case.low = false;
  for (OperandCase& operand : op_case.operands) {
    if (!IsFloating(operand.spec.dtype)) continue;
    const Values numbers = dtype == DType::kI8 ? Integers(-128, 128) : Integers(-1000, 1 << 30);
    operand = {{dtype, operand.spec.shape}, dtype == DType::kBool ? Integers(0, 2) : numbers};
  }
  for (TensorSpec& result : op_case.results) {
    if (IsFloating(result.dtype)) result.dtype = dtype;
  }
  return op_case;
}

void AddMovement(std::vector<OpCase>& cases, OpCase op_case) {
  constexpr std::int64_t kMany = 10000;
  for (DType dtype : {DType::kI8, DType::kI32, DType::kI64, DType::kBool}) {
    // One type shows how many elements are cut into tasks.
    if (dtype == DType::kI8 || op_case.results[0].num_elements() < kMany) cases.push_back(OfType(op_case, dtype));
  }
  cases.push_back(std::move(op_case));
}

}  // namespace mpc::op_cases
