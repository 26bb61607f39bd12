#include "kernels/box.h"

namespace mpc {

Box MakeBox(const Shape& extents, const Shape& from, const Shape& from_starts, const Shape& to,
            const Shape& to_starts) {
  const Shape from_strides = RowMajorStrides(from);
  const Shape to_strides = RowMajorStrides(to);
  Box box;
  for (std::size_t axis = extents.size(); axis-- > 0;) {
    const std::int64_t from_stride = from_strides[axis], to_stride = to_strides[axis];
    box.from_offset += from_starts[axis] * from_stride;
    box.to_offset += to_starts[axis] * to_stride;
    if (extents[axis] == 1) continue;
    if (box.axes.empty() && from_stride == box.run && to_stride == box.run) {
      box.run *= extents[axis];
      continue;
    }
    box.rows *= extents[axis];
    if (!box.axes.empty()) {
      Box::Axis& inner = box.axes.back();
      if (from_stride == inner.extent * inner.from_stride && to_stride == inner.extent * inner.to_stride) {
        inner.extent *= extents[axis];
        continue;
      }
    }
    box.axes.push_back({extents[axis], from_stride, to_stride});
  }
  return box;
}

std::vector<Box> PartsAlong(std::size_t axis, const Shape& whole, const std::vector<std::int64_t>& sizes, bool joins) {
  std::vector<Box> boxes;
  const Shape zeros(whole.size(), 0);
  Shape starts = zeros, part = whole;
  for (std::int64_t size : sizes) {
    part[axis] = size;
    boxes.push_back(joins ? MakeBox(part, part, zeros, whole, starts) : MakeBox(part, whole, starts, part, zeros));
    starts[axis] += size;
  }
  return boxes;
}

}  // namespace mpc
