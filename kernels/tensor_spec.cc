#include "kernels/tensor_spec.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc {

std::int64_t NumElements(const Shape& shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) {
    if (__builtin_mul_overflow(count, extent, &count)) return std::numeric_limits<std::int64_t>::max();
  }
  return count;
}

Shape RowMajorStrides(const Shape& shape) {
  Shape strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

std::string ShapeToString(const Shape& shape) { return shape.empty() ? "scalar" : absl::StrJoin(shape, "x"); }

std::string TensorSpec::ToString() const {
  std::string text = "tensor<";
  for (std::int64_t extent : shape) absl::StrAppend(&text, extent, "x");
  const std::string_view element = DTypeName(dtype);
  text.append(element.data(), element.size());
  return text + ">";
}

}  // namespace mpc
