// concat, slice, split and pad: boxes of elements move between tensors of any floating storage type.
#include <cstring>
#include <vector>

#include "kernels/cpu/move_elements.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

// Elements that a task moves at least.
constexpr std::int64_t kTaskElements = 16 * 1024;

// A box of elements that lies in two row-major tensors. Axes along which it is contiguous in both are merged into runs.
class Box {
 public:
  // The box of `extents` at `from_starts` of a tensor of shape `from` and at `to_starts` of one of shape `to`.
  Box(const Shape& extents, const Shape& from, const Shape& from_starts, const Shape& to, const Shape& to_starts) {
    const Shape from_strides = RowMajorStrides(from);
    const Shape to_strides = RowMajorStrides(to);
    for (std::size_t axis = extents.size(); axis-- > 0;) {
      from_offset_ += from_starts[axis] * from_strides[axis];
      to_offset_ += to_starts[axis] * to_strides[axis];
      if (extents[axis] == 1) continue;
      if (axes_.empty() && from_strides[axis] == run_ && to_strides[axis] == run_) {
        run_ *= extents[axis];
        continue;
      }
      axes_.push_back({extents[axis], from_strides[axis], to_strides[axis]});
      rows_ *= extents[axis];
    }
  }

  void Move(DType from_type, const void* from, DType to_type, void* to) const {
    // Long runs are cut, short ones grouped.
    const std::int64_t chunks = (run_ + kTaskElements - 1) / kTaskElements;
    const std::int64_t group = chunks > 1 ? 1 : (kTaskElements + run_ - 1) / run_;
    ParallelFor((rows_ + group - 1) / group * chunks, rows_ * run_, [&](std::int64_t task) {
      const std::int64_t start = task % chunks * kTaskElements;
      const std::int64_t count = chunks > 1 ? std::min(kTaskElements, run_ - start) : run_;
      const std::int64_t begin = task / chunks * group;
      for (std::int64_t row = begin; row < std::min(rows_, begin + group); ++row) {
        std::int64_t source = from_offset_ + start, target = to_offset_ + start, rest = row;
        for (const Axis& axis : axes_) {
          source += rest % axis.extent * axis.from_stride;
          target += rest % axis.extent * axis.to_stride;
          rest /= axis.extent;
        }
        MoveElements(from_type, from, source, to_type, to, target, count);
      }
    });
  }

 private:
  struct Axis {
    std::int64_t extent, from_stride, to_stride;
  };
  std::vector<Axis> axes_;  // innermost first
  std::int64_t run_ = 1, rows_ = 1;
  std::int64_t from_offset_ = 0, to_offset_ = 0;
};

Shape Zeros(const Shape& like) { return Shape(like.size(), 0); }

// A whole tensor that is cut into parts of `sizes` along an axis, or joined from them: the box of each part.
std::vector<Box> PartsAlong(std::size_t axis, const Shape& whole, const std::vector<std::int64_t>& sizes, bool joins) {
  std::vector<Box> boxes;
  Shape starts = Zeros(whole), part = whole;
  for (std::int64_t size : sizes) {
    part[axis] = size;
    boxes.push_back(joins ? Box(part, part, Zeros(part), whole, starts) : Box(part, whole, starts, part, Zeros(part)));
    starts[axis] += size;
  }
  return boxes;
}

std::size_t AxisOf(const KernelSpec& spec, const Shape& shape) {
  const std::int64_t axis = spec.attributes.GetInt("axis", 0);
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(shape.size()) : axis);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateConcat(const KernelSpec& spec) {
  const Shape& whole = spec.outputs[0].shape;
  const std::size_t axis = AxisOf(spec, whole);
  std::vector<DType> types;
  std::vector<std::int64_t> sizes;
  for (const TensorSpec& input : spec.inputs) {
    types.push_back(input.dtype);
    sizes.push_back(input.shape[axis]);
  }
  return MakeKernel([types, boxes = PartsAlong(axis, whole, sizes, /*joins=*/true),
                     y_type = spec.outputs[0].dtype](const KernelOperands& operands) {
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      boxes[i].Move(types[i], operands.inputs[i], y_type, operands.outputs[0]);
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSplit(const KernelSpec& spec) {
  const Shape& whole = spec.inputs[0].shape;
  std::vector<DType> types;
  std::vector<bool> used;
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    types.push_back(spec.outputs[i].dtype);
    used.push_back(spec.uses(i));
  }
  const std::vector<std::int64_t> sizes = spec.attributes.GetInts("sizes");
  return MakeKernel([types, used, boxes = PartsAlong(AxisOf(spec, whole), whole, sizes, /*joins=*/false),
                     x_type = spec.inputs[0].dtype](const KernelOperands& operands) {
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      if (used[i]) boxes[i].Move(x_type, operands.inputs[0], types[i], operands.outputs[i]);
    }
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSlice(const KernelSpec& spec) {
  const Shape& y = spec.outputs[0].shape;
  const Box box(y, spec.inputs[0].shape, spec.attributes.GetInts("starts"), y, Zeros(y));
  return MakeKernel(
      [box, x_type = spec.inputs[0].dtype, y_type = spec.outputs[0].dtype](const KernelOperands& operands) {
        box.Move(x_type, operands.inputs[0], y_type, operands.outputs[0]);
      });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreatePad(const KernelSpec& spec) {
  const Shape& x = spec.inputs[0].shape;
  const Shape& y = spec.outputs[0].shape;
  const Box box(x, x, Zeros(x), y, spec.attributes.GetInts("low"));
  const float value = static_cast<float>(spec.attributes.GetDouble("value", 0));
  return MakeKernel([box, value, x_type = spec.inputs[0].dtype, y_type = spec.outputs[0].dtype,
                     count = NumElements(y)](const KernelOperands& operands) {
    FillElements(y_type, operands.outputs[0], count, value);
    box.Move(x_type, operands.inputs[0], y_type, operands.outputs[0]);
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
