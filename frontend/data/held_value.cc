#include "frontend/data/held_value.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "frontend/graph/element_conversion.h"

namespace mpc::data::internal {
namespace {

using mpc::internal::ConvertElements;

/// 2^63, the least number above i64 that f64 has. It would become the largest i64, and that 2^63 again.
constexpr double kAboveI64 = 9223372036854775808.0;

bool Holds(DType dtype, double value) {
  std::uint64_t element = 0;
  double back = 0;
  ConvertElements(DType::kF64, &value, dtype, &element, 1);
  ConvertElements(dtype, &element, DType::kF64, &back, 1);
  if (IsFloating(dtype)) return std::isfinite(back) || !std::isfinite(value);
  return back == value && value < kAboveI64;
}

template <typename Integer>
std::string RangeOf() {
  using Limits = std::numeric_limits<Integer>;
  return absl::StrCat("whole numbers from ", std::int64_t{Limits::min()}, " to ", std::int64_t{Limits::max()});
}

std::string ValuesOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "0 and 1";
    case DType::kU8:
      return RangeOf<std::uint8_t>();
    case DType::kI8:
      return RangeOf<std::int8_t>();
    case DType::kI32:
      return RangeOf<std::int32_t>();
    case DType::kI64:
      return RangeOf<std::int64_t>();
    default:
      return "numbers that do not become infinite in it";
  }
}

}  // namespace

absl::Status CheckHeld(const std::string& where, double value, DType dtype) {
  if (Holds(dtype, value)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(where, " is ", value, "; ", std::string(DTypeName(dtype)), " takes ", ValuesOf(dtype)));
}

}  // namespace mpc::data::internal
