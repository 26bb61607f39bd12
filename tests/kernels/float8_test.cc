// Storage types of one byte: every value survives widening, rounding is to nearest even, and casts of every f16 and
// bf16 are those of ml_dtypes, bit for bit.
#include "kernels/float8.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "kernels/dtype.h"
#include "kernels/float16.h"
#include "kernels/reference/reference.h"

namespace mpc {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
float Value(int bits) {
  return T::ToFloat(static_cast<std::uint8_t>(bits));
}

/// Rounds by looking at all values: the nearest one, the even one of two.
template <typename T>
std::uint8_t NearestOf(float value, int largest, std::uint8_t beyond, std::uint8_t nan) {
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) return sign | nan;
  const double magnitude = std::fabs(static_cast<double>(value));
  // What would follow the largest value if exponents went on.
  const double last = Value<T>(largest), step = last - Value<T>(largest - 1);
  if (magnitude > last + step / 2 || (magnitude == last + step / 2 && largest % 2 == 1)) return sign | beyond;
  int nearest = 0;
  for (int bits = 1; bits <= largest; ++bits) {
    const double old_error = std::fabs(Value<T>(nearest) - magnitude), error = std::fabs(Value<T>(bits) - magnitude);
    if (error < old_error || (error == old_error && bits % 2 == 0)) nearest = bits;
  }
  return static_cast<std::uint8_t>(sign | nearest);
}

std::uint8_t Nearest(Float8E4M3FN, float value) { return NearestOf<Float8E4M3FN>(value, 0x7e, 0x7f, 0x7f); }
std::uint8_t Nearest(Float8E5M2, float value) { return NearestOf<Float8E5M2>(value, 0x7b, 0x7c, 0x7e); }

/// The reference's way to the same bits: through f64.
template <typename T>
constexpr DType kTypeOf = std::is_same_v<T, Float8E4M3FN> ? DType::kF8E4M3FN : DType::kF8E5M2;

template <typename T>
class Float8Test : public ::testing::Test {};
using Types = ::testing::Types<Float8E4M3FN, Float8E5M2>;
TYPED_TEST_SUITE(Float8Test, Types);

TYPED_TEST(Float8Test, EveryValueSurvivesWidening) {
  for (int bits = 0; bits < 256; ++bits) {
    const float value = Value<TypeParam>(bits);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << bits;
    } else {
      EXPECT_EQ(TypeParam(value).bits, bits);
    }
  }
}

TYPED_TEST(Float8Test, TheTableSaysWhatItHolds) {
  const DTypeInfo& info = InfoOf(kTypeOf<TypeParam>);
  EXPECT_EQ(Value<TypeParam>(1), std::ldexp(1.0f, info.least_exponent - info.precision + 1)) << "the least subnormal";
  float largest = 0;
  for (int bits = 0; bits < 128; ++bits) {
    if (std::isfinite(Value<TypeParam>(bits))) largest = std::max(largest, Value<TypeParam>(bits));
  }
  EXPECT_EQ(std::ilogb(largest), info.largest_exponent);
  for (const DType wide : {DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    EXPECT_TRUE(WidensExactly(kTypeOf<TypeParam>, wide)) << DTypeName(wide);
    EXPECT_FALSE(WidensExactly(wide, kTypeOf<TypeParam>)) << DTypeName(wide);
    for (int bits = 0; bits < 256; ++bits) {
      const double value = Value<TypeParam>(bits);
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(reference::RoundTo(wide, value), value) << DTypeName(wide);
    }
  }
}

TYPED_TEST(Float8Test, EveryF16AndBF16RoundsToTheNearest) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    for (const float value : {Half::ToFloat(static_cast<std::uint16_t>(bits)), std::bit_cast<float>(bits << 16)}) {
      const std::uint8_t stored = TypeParam(value).bits;
      ASSERT_EQ(stored, Nearest(TypeParam(), value)) << value;
      const double rounded = reference::RoundTo(kTypeOf<TypeParam>, value), widened = Value<TypeParam>(stored);
      if (std::isnan(widened)) {
        ASSERT_TRUE(std::isnan(rounded)) << value;
      } else {
        ASSERT_EQ(rounded, widened) << value;
      }
    }
  }
}

TYPED_TEST(Float8Test, AnF32RoundsOnce) {
  // Just above and below the middle of two neighbours: an f16 on the way would make a tie of it.
  for (int bits = 0; bits < 0x7b; ++bits) {
    const float middle = (Value<TypeParam>(bits) + Value<TypeParam>(bits + 1)) / 2;
    EXPECT_EQ(TypeParam(middle).bits, bits % 2 == 0 ? bits : bits + 1);
    EXPECT_EQ(TypeParam(std::nextafter(middle, kInfinity)).bits, bits + 1);
    EXPECT_EQ(TypeParam(std::nextafter(middle, 0.0f)).bits, bits);
  }
}

std::uint32_t Crc32(const std::string& bytes) {
  return static_cast<std::uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

// CRC-32 of the casts of all 2^16 values in the order of their bits, by ml_dtypes 0.6.0:
//   zlib.crc32(numpy.arange(65536, dtype="u2").view("f2").astype(ml_dtypes.float8_e5m2).tobytes())
TYPED_TEST(Float8Test, CastsAreThoseOfMlDtypes) {
  std::string of_f16, of_bf16;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    of_f16.push_back(static_cast<char>(TypeParam(Half::ToFloat(static_cast<std::uint16_t>(bits))).bits));
    of_bf16.push_back(static_cast<char>(TypeParam(std::bit_cast<float>(bits << 16)).bits));
  }
  const bool is_e4m3 = std::is_same_v<TypeParam, Float8E4M3FN>;
  EXPECT_EQ(Crc32(of_f16), is_e4m3 ? 0x14606500U : 0x2edb1882U);
  EXPECT_EQ(Crc32(of_bf16), is_e4m3 ? 0xcbf713feU : 0xee0de81cU);
}

TEST(Float8E4M3FN, HasNoInfinity) {
  EXPECT_EQ(Float8E4M3FN(448.0f).bits, 0x7e);
  EXPECT_EQ(Float8E4M3FN(464.0f).bits, 0x7e) << "a tie with what would be 480, which is odd";
  EXPECT_EQ(Float8E4M3FN(465.0f).bits, 0x7f);
  EXPECT_EQ(Float8E4M3FN(-kInfinity).bits, 0xff);
  EXPECT_TRUE(std::isnan(Value<Float8E4M3FN>(0x7f)));
}

TEST(Float8E5M2, RoundsToInfinityFromTheMiddleBeyondItsLargestValue) {
  EXPECT_EQ(Float8E5M2(57344.0f).bits, 0x7b);
  EXPECT_EQ(Float8E5M2(std::nextafter(61440.0f, 0.0f)).bits, 0x7b);
  EXPECT_EQ(Float8E5M2(61440.0f).bits, 0x7c);
  EXPECT_EQ(Value<Float8E5M2>(0xfc), -kInfinity);
}

}  // namespace
}  // namespace mpc
