#include "kernels/dtype.h"

#include <array>
#include <utility>

namespace mpc {

std::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF64:
      return "f64";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kBool:
      return "i1";
    case DType::kI8:
      return "i8";
  }
  return "unknown";
}

std::optional<DType> ParseDType(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, DType>, 16> kNames = {{
      {"f32", DType::kF32},
      {"float32", DType::kF32},
      {"f16", DType::kF16},
      {"float16", DType::kF16},
      {"bf16", DType::kBF16},
      {"bfloat16", DType::kBF16},
      {"f64", DType::kF64},
      {"float64", DType::kF64},
      {"i32", DType::kI32},
      {"int32", DType::kI32},
      {"i64", DType::kI64},
      {"int64", DType::kI64},
      {"i1", DType::kBool},
      {"bool", DType::kBool},
      {"i8", DType::kI8},
      {"int8", DType::kI8},
  }};
  for (const auto& [known, dtype] : kNames) {
    if (known == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace mpc
