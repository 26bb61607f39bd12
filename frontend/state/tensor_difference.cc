#include "frontend/state/tensor_difference.h"

#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontend/graph/tensor.h"

namespace mpc {
namespace {

template <typename T>
T Load(const std::uint8_t* element) {
  T value;
  std::memcpy(&value, element, sizeof(value));
  return value;
}

/// The element as a double. A 64-bit integer may be rounded.
double NumberOf(DType dtype, const std::uint8_t* element) {
  if (dtype == DType::kF64) return Load<double>(element);
  return Tensor::FromBytes({dtype, {1}}, element, ElementSize(dtype)).ToFloats().front();
}

std::string TextOf(DType dtype, const std::uint8_t* element) {
  if (dtype == DType::kI64) return absl::StrCat(Load<std::int64_t>(element));
  if (dtype == DType::kI32) return absl::StrCat(Load<std::int32_t>(element));
  return absl::StrFormat("%.*g", dtype == DType::kF64 ? 17 : 9, NumberOf(dtype, element));
}

/// Floating types are a sign and a magnitude: magnitudes of neighbours are neighbours.
std::optional<std::uint64_t> UlpsBetween(DType dtype, const std::uint8_t* a, const std::uint8_t* b) {
  if (!IsFloating(dtype) || std::isnan(NumberOf(dtype, a)) || std::isnan(NumberOf(dtype, b))) return std::nullopt;
  const std::size_t size = ElementSize(dtype);
  const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
  std::uint64_t bits[2] = {};
  std::memcpy(&bits[0], a, size);
  std::memcpy(&bits[1], b, size);
  const std::uint64_t first = bits[0] & ~sign;
  const std::uint64_t second = bits[1] & ~sign;
  if (((bits[0] ^ bits[1]) & sign) != 0) return first + second;
  return first > second ? first - second : second - first;
}

}  // namespace

std::string TensorDifference::ToString(std::string_view first_place, std::string_view second_place) const {
  std::string text =
      absl::StrCat(different, " of ", elements, elements == 1 ? " element" : " elements",
                   different == 1 ? " differs" : " differ", ", the first is element ", first, ": ", first_value, " in ",
                   std::string(first_place), ", ", second_value, " in ", std::string(second_place));
  if (ulps.has_value()) absl::StrAppend(&text, ", ", *ulps, *ulps == 1 ? " ulp apart" : " ulps apart");
  return text;
}

std::optional<TensorDifference> FindDifference(const TensorSpec& spec, absl::Span<const std::uint8_t> first,
                                               absl::Span<const std::uint8_t> second) {
  const std::size_t size = ElementSize(spec.dtype);
  TensorDifference found{.elements = first.size() / size};
  for (std::size_t i = 0; i < found.elements; ++i) {
    if (std::memcmp(first.data() + i * size, second.data() + i * size, size) == 0) continue;
    if (found.different++ == 0) found.first = i;
  }
  if (found.different == 0) return std::nullopt;
  const std::uint8_t* a = first.data() + found.first * size;
  const std::uint8_t* b = second.data() + found.first * size;
  found.first_value = TextOf(spec.dtype, a);
  found.second_value = TextOf(spec.dtype, b);
  found.ulps = UlpsBetween(spec.dtype, a, b);
  return found;
}

}  // namespace mpc
