// concat, slice, split and pad: boxes of elements move between tensors of one type, or of any two floating types.
#include <algorithm>
#include <vector>

#include "kernels/box.h"
#include "kernels/cpu/move_elements.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

// Elements that a task moves at least.
constexpr std::int64_t kTaskElements = 16 * 1024;

void Move(const Box& box, DType from_type, const void* from, DType to_type, void* to) {
  const std::int64_t run = box.run, rows = box.rows;
  if (run * rows == 0) return;
  // Long runs are cut, short ones grouped.
  const std::int64_t chunks = (run + kTaskElements - 1) / kTaskElements;
  const std::int64_t group = chunks > 1 ? 1 : (kTaskElements + run - 1) / run;
  ParallelFor((rows + group - 1) / group * chunks, rows * run, [&](std::int64_t task) {
    const std::int64_t start = task % chunks * kTaskElements;
    const std::int64_t count = chunks > 1 ? std::min(kTaskElements, run - start) : run;
    const std::int64_t begin = task / chunks * group;
    for (std::int64_t row = begin; row < std::min(rows, begin + group); ++row) {
      std::int64_t source = box.from_offset + start, target = box.to_offset + start, rest = row;
      for (const Box::Axis& axis : box.axes) {
        source += rest % axis.extent * axis.from_stride;
        target += rest % axis.extent * axis.to_stride;
        rest /= axis.extent;
      }
      MoveElements(from_type, from, source, to_type, to, target, count);
    }
  });
}

Shape Zeros(const Shape& like) { return Shape(like.size(), 0); }

std::size_t AxisOf(const KernelSpec& spec, const Shape& shape) {
  const std::int64_t axis = spec.attributes.GetInt("axis");
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConcat(const KernelSpec& spec) {
  const Shape& whole = spec.outputs[0].shape;
  const std::size_t axis = AxisOf(spec, whole);
  std::vector<DType> types;
  std::vector<std::int64_t> sizes;
  for (const TensorSpec& input : spec.inputs) {
    if (!CanMove(input.dtype, spec.outputs[0].dtype)) return UnsupportedTypes(spec);
    types.push_back(input.dtype);
    sizes.push_back(input.shape[axis]);
  }
  return MakeKernel([types, boxes = PartsAlong(axis, whole, sizes, /*joins=*/true),
                     y_type = spec.outputs[0].dtype](const KernelOperands& operands) {
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      Move(boxes[i], types[i], operands.inputs[i], y_type, operands.outputs[0]);
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSplit(const KernelSpec& spec) {
  const Shape& whole = spec.inputs[0].shape;
  std::vector<DType> types;
  std::vector<bool> used;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    if (spec.uses(i) && !CanMove(spec.inputs[0].dtype, spec.outputs[i].dtype)) return UnsupportedTypes(spec);
    types.push_back(spec.outputs[i].dtype);
    used.push_back(spec.uses(i));
  }
  const std::vector<std::int64_t> sizes = spec.attributes.GetInts("sizes");
  return MakeKernel([types, used, boxes = PartsAlong(AxisOf(spec, whole), whole, sizes, /*joins=*/false),
                     x_type = spec.inputs[0].dtype](const KernelOperands& operands) {
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      if (used[i]) Move(boxes[i], x_type, operands.inputs[0], types[i], operands.outputs[i]);
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSlice(const KernelSpec& spec) {
  const DType x_type = spec.inputs[0].dtype, y_type = spec.outputs[0].dtype;
  if (!CanMove(x_type, y_type)) return UnsupportedTypes(spec);
  const Shape& y = spec.outputs[0].shape;
  const Box box = MakeBox(y, spec.inputs[0].shape, spec.attributes.GetInts("starts"), y, Zeros(y));
  return MakeKernel([box, x_type, y_type](const KernelOperands& operands) {
    Move(box, x_type, operands.inputs[0], y_type, operands.outputs[0]);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreatePad(const KernelSpec& spec) {
  if (!CanMove(spec.inputs[0].dtype, spec.outputs[0].dtype)) return UnsupportedTypes(spec);
  const Shape& x = spec.inputs[0].shape;
  const Shape& y = spec.outputs[0].shape;
  const Box box = MakeBox(x, x, Zeros(x), y, spec.attributes.GetInts("low"));
  const float value = FloatAttribute(spec, "value");
  return MakeKernel([box, value, x_type = spec.inputs[0].dtype, y_type = spec.outputs[0].dtype,
                     count = NumElements(y)](const KernelOperands& operands) {
    FillElements(y_type, operands.outputs[0], count, value);
    Move(box, x_type, operands.inputs[0], y_type, operands.outputs[0]);
  });
}

}  // namespace

void RegisterMovement(Registry& registry) {
  registry.Add("concat", CreateConcat);
  registry.Add("split", CreateSplit);
  registry.Add("slice", CreateSlice);
  registry.Add("pad", CreatePad);
}

}  // namespace mpc::cpu
