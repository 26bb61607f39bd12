#include "frontend/graph/element_conversion.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/float16.h"
#include "kernels/float8.h"

namespace mpc::internal {
namespace {

template <typename T>
inline constexpr bool kIsLow = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
                               std::is_same_v<T, Float8E4M3FN> || std::is_same_v<T, Float8E5M2>;

/// Calls `visit` with a null pointer of the element type of `dtype`.
template <typename Visitor>
void VisitElementType(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::kF32:
      return visit(static_cast<float*>(nullptr));
    case DType::kF16:
      return visit(static_cast<Half*>(nullptr));
    case DType::kBF16:
      return visit(static_cast<BFloat16*>(nullptr));
    case DType::kF64:
      return visit(static_cast<double*>(nullptr));
    case DType::kI32:
      return visit(static_cast<std::int32_t*>(nullptr));
    case DType::kI64:
      return visit(static_cast<std::int64_t*>(nullptr));
    case DType::kBool:
      return visit(static_cast<bool*>(nullptr));
    case DType::kI8:
      return visit(static_cast<std::int8_t*>(nullptr));
    case DType::kF8E4M3FN:
      return visit(static_cast<Float8E4M3FN*>(nullptr));
    case DType::kF8E5M2:
      return visit(static_cast<Float8E5M2*>(nullptr));
    case DType::kU8:
      return visit(static_cast<std::uint8_t*>(nullptr));
  }
}

/// `value` in f32, rounded to odd: the last bit is set whenever bits were lost. Rounding the result to nearest even, in
/// a type with at least two bits less, equals rounding `value` once. See Boldo and Melquiond, "When double rounding is
/// odd", 2005. The wide source holds every f64 and i64 exactly.
float RoundToOdd(long double value) {
  float rounded = static_cast<float>(value);
  if (static_cast<long double>(rounded) == value || std::isnan(rounded)) return rounded;
  if (std::fabs(static_cast<long double>(rounded)) > std::fabs(value)) rounded = std::nextafter(rounded, 0.0f);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(rounded) | 1u);
}

template <typename To, typename From>
To ToInteger(From value) {
  if constexpr (std::is_same_v<From, bool>) {
    return value ? 1 : 0;
  } else {
    constexpr To kLowest = std::numeric_limits<To>::lowest();
    constexpr To kMax = std::numeric_limits<To>::max();
    if (value != value) return 0;
    // Exact in the wide type, so the comparisons are too.
    const long double wide = static_cast<long double>(value);
    if (wide <= static_cast<long double>(kLowest)) return kLowest;
    if (wide >= static_cast<long double>(kMax)) return kMax;
    return static_cast<To>(value);
  }
}

template <typename To, typename From>
To ConvertElement(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (kIsLow<From>) {
    return ConvertElement<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, bool>) {
    return value != From{0};
  } else if constexpr (std::is_integral_v<To>) {
    return ToInteger<To>(value);
  } else if constexpr (!kIsLow<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_same_v<From, float> || std::is_same_v<From, bool>) {
    return To(static_cast<float>(value));
  } else {
    return To(RoundToOdd(static_cast<long double>(value)));
  }
}

}  // namespace

void ConvertElements(DType from, const void* source, DType to, void* destination, std::size_t count) {
  if (count == 0) return;
  if (from == to) {
    std::memcpy(destination, source, count * ElementSize(to));
    return;
  }
  VisitElementType(from, [&]<typename From>(From*) {
    VisitElementType(to, [&]<typename To>(To*) {
      const From* input = static_cast<const From*>(source);
      To* output = static_cast<To*>(destination);
      for (std::size_t i = 0; i < count; ++i) output[i] = ConvertElement<To>(input[i]);
    });
  });
}

}  // namespace mpc::internal
