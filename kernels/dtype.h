// Element types shared by every layer, from kernels to the front end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace mpc {

/// Element type of a tensor. `kF64` is for the reference implementation, and for a few scalars (kernels/f64_scalars.h).
/// Files hold the numbers: a new type comes last.
/// `kU8` is for data of the host, such as pictures: no operation takes it.
enum class DType : std::uint8_t { kF32, kF16, kBF16, kF64, kI32, kI64, kBool, kI8, kF8E4M3FN, kF8E5M2, kU8 };

/// The properties of an element type. This is the only place that lists them.
struct DTypeInfo {
  std::string_view name;         ///< in the IR, in listings and in messages
  std::string_view long_name;    ///< in Python's libraries; what reads a type by name accepts both
  std::string_view safetensors;  ///< in a .safetensors file
  std::string_view npy;          ///< in a .npy file; empty where NumPy has no such type
  std::uint8_t bytes;            ///< bytes of one stored element
  bool low = false;              ///< mixed precision stores and multiplies in it
  /// For a floating type: the bits of the significand, counting the leading one, and the exponents e of normal numbers
  /// 1.f * 2^e. Subnormals lie below the least of these. 0 for other types.
  int precision = 0;
  int least_exponent = 0;
  int largest_exponent = 0;
  bool cast_only = false;  ///< nothing but a cast reads or writes it

  constexpr bool floating() const { return precision > 0; }
};

/// The element types in the order of DType.
inline constexpr std::array kDTypes = {
    DTypeInfo{"f32", "float32", "F32", "<f4", 4, false, 24, -126, 127},
    DTypeInfo{"f16", "float16", "F16", "<f2", 2, true, 11, -14, 15},
    DTypeInfo{"bf16", "bfloat16", "BF16", "", 2, true, 8, -126, 127},
    DTypeInfo{"f64", "float64", "F64", "<f8", 8, false, 53, -1022, 1023},
    DTypeInfo{"i32", "int32", "I32", "<i4", 4},
    DTypeInfo{"i64", "int64", "I64", "<i8", 8},
    DTypeInfo{"i1", "bool", "BOOL", "|b1", 1},
    DTypeInfo{"i8", "int8", "I8", "|i1", 1},
    DTypeInfo{"f8E4M3FN", "float8_e4m3fn", "F8_E4M3", "", 1, false, 4, -6, 8, true},
    DTypeInfo{"f8E5M2", "float8_e5m2", "F8_E5M2", "", 1, false, 3, -14, 15, true},
    DTypeInfo{"u8", "uint8", "U8", "|u1", 1, false, 0, 0, 0, true},
};
inline constexpr DType kLastDType = DType::kU8;
static_assert(kDTypes.size() == static_cast<std::size_t>(kLastDType) + 1);
/// Programs hold the types up to this one.
inline constexpr DType kLastProgramDType = DType::kF8E5M2;

/// The properties of a number that is no type, as a damaged Program may hold it: no bytes.
inline constexpr DTypeInfo kUnknownDType{"unknown", "", "", "", 0};

constexpr const DTypeInfo& InfoOf(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  return index < kDTypes.size() ? kDTypes[index] : kUnknownDType;
}

/// Short name as the IR prints it: "f32", "bf16", "i1", ...
constexpr std::string_view DTypeName(DType dtype) { return InfoOf(dtype).name; }

/// Accepts the short names and the long ones ("float32", "float16", "bfloat16", "int32", "bool", ...).
std::optional<DType> ParseDType(std::string_view name);

/// Bytes of one stored element; `kBool` takes one byte.
constexpr std::size_t ElementSize(DType dtype) { return InfoOf(dtype).bytes; }

namespace internal {

/// A bit for each type that `holds`. Code of a GPU reads a constant, but not the table.
template <typename Predicate>
constexpr std::uint32_t DTypeMask(Predicate holds) {
  std::uint32_t mask = 0;
  for (std::size_t i = 0; i < kDTypes.size(); ++i) mask |= std::uint32_t{holds(kDTypes[i])} << i;
  return mask;
}
constexpr bool IsInMask(std::uint32_t mask, DType dtype) {
  const auto index = static_cast<unsigned>(dtype);
  return index < 32 && (mask >> index & 1u) != 0;
}

inline constexpr std::uint32_t kFloatingMask = DTypeMask([](const DTypeInfo& info) { return info.floating(); });
inline constexpr std::uint32_t kLowMask = DTypeMask([](const DTypeInfo& info) { return info.low; });

}  // namespace internal

constexpr bool IsFloating(DType dtype) { return internal::IsInMask(internal::kFloatingMask, dtype); }

/// True for the types that mixed precision stores and multiplies in.
constexpr bool IsLowPrecision(DType dtype) { return internal::IsInMask(internal::kLowMask, dtype); }

/// Whether every value of floating type `from`, subnormals and zeros of either sign included, is one of floating type
/// `to`. A type widens to itself.
constexpr bool WidensExactly(DType from, DType to) {
  const DTypeInfo& narrow = InfoOf(from);
  const DTypeInfo& wide = InfoOf(to);
  return narrow.floating() && wide.floating() && narrow.precision <= wide.precision &&
         narrow.largest_exponent <= wide.largest_exponent &&
         narrow.least_exponent - narrow.precision >= wide.least_exponent - wide.precision;
}

}  // namespace mpc
