// Element types shared by every layer, from kernels to the front end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mpc {

/// Element type of a tensor. `kF64` is for the reference implementation, and for a few scalars (kernels/f64_scalars.h).
enum class DType : std::uint8_t { kF32, kF16, kBF16, kF64, kI32, kI64, kBool, kI8 };

/// Short name as the IR prints it: "f32", "f16", "bf16", "f64", "i32", "i64", "i1", "i8".
std::string_view DTypeName(DType dtype);

/// Accepts the short names and the long ones ("float32", "float16", "bfloat16", "int32", "bool", ...).
std::optional<DType> ParseDType(std::string_view name);

/// Bytes of one stored element; `kBool` takes one byte.
constexpr std::size_t ElementSize(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kBool:
    case DType::kI8:
      return 1;
  }
  return 0;
}

constexpr bool IsFloating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kF64;
}

/// True for the 16-bit types that mixed precision stores and multiplies in.
constexpr bool IsLowPrecision(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

}  // namespace mpc
