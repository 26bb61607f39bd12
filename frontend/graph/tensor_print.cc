// operator<< of Tensor.
#include <charconv>
#include <cstdint>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/tensor.h"

namespace mpc {
namespace {

/// Beyond this many elements only the first and last kEdge of each axis are printed.
constexpr std::int64_t kMaxElements = 1000;
constexpr std::int64_t kEdge = 3;

/// The shortest decimal that reads back as the same value.
template <typename T>
std::string Shortest(T value) {
  char text[64];
  const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, end.ptr);
}

std::string ElementToString(const Tensor& tensor, std::int64_t index) {
  const auto i = static_cast<std::size_t>(index);
  switch (tensor.dtype()) {
    case DType::kF32:
      return Shortest(tensor.data<float>()[i]);
    case DType::kF16:
      return Shortest(static_cast<float>(tensor.data<Half>()[i]));
    case DType::kBF16:
      return Shortest(static_cast<float>(tensor.data<BFloat16>()[i]));
    case DType::kF64:
      return Shortest(tensor.data<double>()[i]);
    case DType::kI32:
      return Shortest(tensor.data<std::int32_t>()[i]);
    case DType::kI64:
      return Shortest(tensor.data<std::int64_t>()[i]);
    case DType::kBool:
      return tensor.data<bool>()[i] ? "true" : "false";
    case DType::kI8:
      return Shortest(static_cast<int>(tensor.data<std::int8_t>()[i]));
    case DType::kF8E4M3FN:
      return Shortest(static_cast<float>(tensor.data<Float8E4M3FN>()[i]));
    case DType::kF8E5M2:
      return Shortest(static_cast<float>(tensor.data<Float8E5M2>()[i]));
    case DType::kU8:
      return Shortest(static_cast<int>(tensor.data<std::uint8_t>()[i]));
  }
  return "?";
}

void AppendElements(const Tensor& tensor, const Shape& strides, std::int64_t axis, std::int64_t offset,
                    std::string* text) {
  if (axis == tensor.rank()) {
    text->append(ElementToString(tensor, offset));
    return;
  }
  const std::int64_t extent = tensor.dim(axis);
  const bool abbreviate = tensor.size() > kMaxElements && extent > 2 * kEdge;
  text->push_back('[');
  for (std::int64_t i = 0; i < extent; ++i) {
    if (i > 0) text->append(", ");
    if (abbreviate && i == kEdge) {
      text->append("..., ");
      i = extent - kEdge;
    }
    AppendElements(tensor, strides, axis + 1, offset + i * strides[static_cast<std::size_t>(axis)], text);
  }
  text->push_back(']');
}

}  // namespace

std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  if (!tensor.defined()) return stream << "Tensor(empty)";
  if (absl::Status status = tensor.status(); !status.ok()) return stream << "Tensor(" << status.ToString() << ")";
  stream << "Tensor(shape=[" << absl::StrJoin(tensor.shape(), ", ") << "], dtype=" << DTypeName(tensor.dtype());
  if (tensor.symbolic()) return stream << ", symbolic)";
  std::string text;
  if (tensor.size() > 0) {
    AppendElements(tensor, RowMajorStrides(tensor.shape()), 0, 0, &text);
  } else {
    text = "[]";
  }
  return stream << ", " << text << ")";
}

}  // namespace mpc
