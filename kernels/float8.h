// f8E4M3FN and f8E5M2, storage types of one byte: Micikevicius et al., "FP8 formats for deep learning", 2022. Widening
// is exact, narrowing rounds to nearest even. Casts alone read and write them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace mpc {

/// A sign, an exponent and a fraction in eight bits. With `kIeee` the largest exponent holds infinities and NaN, as in
/// IEEE 754. Otherwise it holds numbers, and NaN where all bits of the magnitude are set. What rounds beyond the
/// largest number becomes NaN then.
template <int kExponentBits, int kFractionBits, bool kIeee>
struct Float8 {
  static_assert(kExponentBits + kFractionBits == 7);

  std::uint8_t bits = 0;

  Float8() = default;
  explicit Float8(float value) : bits(FromFloat(value)) {}
  explicit operator float() const { return ToFloat(bits); }

  static std::uint8_t FromFloat(float value) {
    const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint8_t>(x >> 24 & 0x80u);
    const std::uint32_t magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return sign | kNan;
    std::uint32_t rounded;
    if (magnitude < kLeastNormal) {
      // The last bit of the added number is the smallest subnormal, so that the adder rounds to even.
      const float shifted = std::bit_cast<float>(magnitude) + std::bit_cast<float>(kSubnormalAlign);
      rounded = std::bit_cast<std::uint32_t>(shifted) - kSubnormalAlign;
    } else {
      const std::uint32_t odd = magnitude >> kShift & 1u;
      rounded = (magnitude - kRebias + (1u << (kShift - 1)) - 1 + odd) >> kShift;
    }
    return static_cast<std::uint8_t>(sign | std::min(rounded, kBeyondLargest));
  }

  static float ToFloat(std::uint8_t stored) {
    const std::uint32_t sign = static_cast<std::uint32_t>(stored & 0x80u) << 24;
    const std::uint32_t magnitude = stored & 0x7fu;
    const bool special = kIeee ? magnitude >= kBeyondLargest : magnitude == kNan;
    if (special) {
      return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & ((1u << kFractionBits) - 1)) << kShift);
    }
    if (magnitude < 1u << kFractionBits) {
      const float value = static_cast<float>(magnitude) * std::bit_cast<float>(kLeastSubnormal);
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << kShift) + kRebias));
  }

 private:
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr int kShift = 23 - kFractionBits;
  /// 2^exponent as an f32.
  static constexpr std::uint32_t PowerOfTwo(int exponent) { return static_cast<std::uint32_t>(exponent + 127) << 23; }
  static constexpr std::uint32_t kRebias = static_cast<std::uint32_t>(127 - kBias) << 23;
  static constexpr std::uint32_t kLeastNormal = PowerOfTwo(1 - kBias);
  static constexpr std::uint32_t kLeastSubnormal = PowerOfTwo(1 - kBias - kFractionBits);
  static constexpr std::uint32_t kSubnormalAlign = PowerOfTwo(1 - kBias - kFractionBits + 23);
  /// The bits that follow those of the largest number: infinity, or NaN. A quiet NaN has the first bit of the fraction
  /// set.
  static constexpr std::uint32_t kBeyondLargest = kIeee ? 0x80u - (1u << kFractionBits) : 0x7fu;
  static constexpr std::uint8_t kNan = kIeee ? kBeyondLargest | 1u << (kFractionBits - 1) : 0x7fu;
};

/// Exponents -6 to 8, 3 fraction bits; largest value 448, smallest 2^-9. No infinities.
using Float8E4M3FN = Float8<4, 3, false>;
/// Exponents -14 to 15, 2 fraction bits: the upper half of an f16. Largest value 57344, smallest 2^-16.
using Float8E5M2 = Float8<5, 2, true>;

}  // namespace mpc
