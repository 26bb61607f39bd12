#include "kernels/float16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/reference/reference.h"
#include "kernels/scalar/cast.h"

namespace mpc {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
void ExpectEveryValueSurvivesWidening() {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    T low;
    low.bits = static_cast<std::uint16_t>(bits);
    const float wide = static_cast<float>(low);
    const T back(wide);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(back))) << bits;
    } else {
      ASSERT_EQ(back.bits, low.bits) << bits;
    }
  }
}

TEST(Half, EveryValueSurvivesWidening) { ExpectEveryValueSurvivesWidening<Half>(); }
TEST(BFloat16, EveryValueSurvivesWidening) { ExpectEveryValueSurvivesWidening<BFloat16>(); }

// Between each pair of neighbours: below the middle rounds down, above it up, the middle to the even one.
template <typename T>
void ExpectNearestEven(std::uint32_t infinity_bits) {
  for (std::uint32_t bits = 0; bits + 1 < infinity_bits; ++bits) {
    T lower, upper;
    lower.bits = static_cast<std::uint16_t>(bits);
    upper.bits = static_cast<std::uint16_t>(bits + 1);
    const double low = static_cast<float>(lower);
    const double high = static_cast<float>(upper);
    const auto middle = static_cast<float>((low + high) / 2);
    if (static_cast<double>(middle) != (low + high) / 2) continue;  // below f32's own spacing
    const std::uint16_t even = bits % 2 == 0 ? lower.bits : upper.bits;
    ASSERT_EQ(T(middle).bits, even) << bits;
    ASSERT_EQ(T(std::nextafter(middle, -kInfinity)).bits, lower.bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, kInfinity)).bits, upper.bits) << bits;
    ASSERT_EQ(T(-middle).bits, even | 0x8000u) << bits;
  }
}

TEST(Half, RoundsToNearestEvenBetweenAllNeighbours) { ExpectNearestEven<Half>(0x7c00); }
TEST(BFloat16, RoundsToNearestEvenBetweenAllNeighbours) { ExpectNearestEven<BFloat16>(0x7f80); }

TEST(Half, RoundsToInfinityFromTheMiddleBeyondItsLargestValue) {
  EXPECT_EQ(static_cast<float>(Half(65519.996f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(Half(65520.0f)), kInfinity);
  EXPECT_EQ(static_cast<float>(Half(-65520.0f)), -kInfinity);
  EXPECT_EQ(static_cast<float>(Half(kInfinity)), kInfinity);
}

TEST(Half, KeepsSubnormals) {
  EXPECT_EQ(Half(0x1p-24f).bits, 1);
  EXPECT_EQ(Half(0x1p-25f).bits, 0);  // a tie with zero, which is even
  EXPECT_EQ(Half(std::nextafter(0x1p-25f, 1.0f)).bits, 1);
  EXPECT_EQ(Half(-0.0f).bits, 0x8000);
}

TEST(BFloat16, RoundsToInfinityBeyondItsLargestValue) {
  EXPECT_EQ(static_cast<float>(BFloat16(std::numeric_limits<float>::max())), kInfinity);
  EXPECT_EQ(BFloat16(0x1.fep127f).bits, 0x7f7f);
}

// The oracle rounds f64 values without going through f32; on f32 values it must agree with the storage types.
TEST(RoundTo, AgreesWithTheStorageTypesOnF32Values) {
  std::uint32_t bits = 12345;
  for (int draw = 0; draw < 1000000; ++draw) {
    bits = bits * 1664525u + 1013904223u;
    const auto value = std::bit_cast<float>(bits);
    if (std::isnan(value)) continue;
    ASSERT_EQ(reference::RoundTo(DType::kF16, value), static_cast<float>(Half(value))) << value;
    ASSERT_EQ(reference::RoundTo(DType::kBF16, value), static_cast<float>(BFloat16(value))) << value;
  }
}

TEST(RoundTo, RoundsOnceWhereF32InBetweenWouldRoundTwice) {
  const double above_tie = 1 + 0x1p-11 + 0x1p-40;  // f32 drops the last bit and leaves a tie
  EXPECT_EQ(reference::RoundTo(DType::kF16, above_tie), 1 + 0x1p-10);
  EXPECT_EQ(static_cast<float>(Half(static_cast<float>(above_tie))), 1.0f);
}

TEST(RoundToOdd, LeavesLaterRoundingOfLongIntegersTheirLastBit) {
  const auto bf16 = [](std::int64_t value) { return static_cast<float>(BFloat16(scalar::RoundToOdd(value))); };
  constexpr std::int64_t kTie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54);
  EXPECT_EQ(bf16(kTie - 1), 0x1p62f);
  EXPECT_EQ(bf16(kTie), 0x1p62f);
  EXPECT_EQ(bf16(kTie + 1), 0x1.02p62f) << "f64 holds neither this integer nor the one before it";
  EXPECT_EQ(bf16(-kTie - 1), -0x1.02p62f);
  EXPECT_EQ(bf16(std::numeric_limits<std::int64_t>::max()), 0x1p63f);
  EXPECT_EQ(bf16(std::numeric_limits<std::int64_t>::min()), -0x1p63f);
  EXPECT_EQ(scalar::RoundToOdd(std::numeric_limits<std::int64_t>::max()), 0x1.fffffep62f);
  EXPECT_EQ(scalar::RoundToOdd(-(std::int64_t{1} << 24) - 1), -0x1.000002p24f);
}

TEST(RoundTo, SaturatesIntegers) {
  EXPECT_EQ(reference::RoundTo(DType::kI8, 300), 127);
  EXPECT_EQ(reference::RoundTo(DType::kI8, -129), -128);
  EXPECT_EQ(reference::RoundTo(DType::kI32, 0x1p31), 0x1p31 - 1);
  EXPECT_EQ(reference::RoundTo(DType::kI64, -INFINITY), -0x1p63);
  EXPECT_EQ(reference::RoundTo(DType::kI64, NAN), 0);
}

TEST(Storage, RoundTripsEveryType) {
  for (DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8, DType::kI32, DType::kI64, DType::kBool}) {
    const bool is_bool = dtype == DType::kBool;
    const reference::Tensor tensor{{dtype, {2, 2}}, {0, 1, is_bool ? 1.0 : -3, is_bool ? 0.0 : 100}};
    std::vector<std::uint8_t> bytes(tensor.spec.bytes());
    reference::ToStorage(tensor, bytes.data());
    EXPECT_EQ(reference::FromStorage(tensor.spec, bytes.data()).values, tensor.values) << DTypeName(dtype);
  }
}

TEST(Storage, SaturatesIntegers) {
  const reference::Tensor tensor{{DType::kI32, {4}}, {1e30, -1e30, std::nan(""), -1.75}};
  std::int32_t values[4];
  reference::ToStorage(tensor, values);
  EXPECT_EQ(values[0], std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(values[1], std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(values[2], 0);
  EXPECT_EQ(values[3], -1);
  const reference::Tensor narrow{{DType::kI8, {4}}, {127.5, 128, -129, -1.75}};
  std::int8_t bytes[4];
  reference::ToStorage(narrow, bytes);
  EXPECT_EQ(bytes[0], 127);
  EXPECT_EQ(bytes[1], 127);
  EXPECT_EQ(bytes[2], -128);
  EXPECT_EQ(bytes[3], -1);
}

}  // namespace
}  // namespace mpc
