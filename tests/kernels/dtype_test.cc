// The table of element types.
#include "kernels/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/reference/reference.h"

namespace mpc {
namespace {

constexpr DType Type(std::size_t index) { return static_cast<DType>(index); }

TEST(DType, IsFoundByEitherName) {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    EXPECT_EQ(ParseDType(kDTypes[i].name), Type(i));
    EXPECT_EQ(ParseDType(kDTypes[i].long_name), Type(i));
    EXPECT_EQ(DTypeName(Type(i)), kDTypes[i].name);
    for (std::size_t other = 0; other < i; ++other) {
      EXPECT_NE(kDTypes[i].name, kDTypes[other].name);
      EXPECT_NE(kDTypes[i].long_name, kDTypes[other].long_name);
      EXPECT_NE(kDTypes[i].safetensors, kDTypes[other].safetensors);
    }
  }
  EXPECT_EQ(ParseDType("f12"), std::nullopt);
  EXPECT_EQ(ParseDType(""), std::nullopt);
}

// Files hold the numbers.
TEST(DType, KeepsItsNumber) {
  const std::vector<std::string> names = {"f32", "f16", "bf16",     "f64",    "i32", "i64",
                                          "i1",  "i8",  "f8E4M3FN", "f8E5M2", "u8"};
  ASSERT_EQ(names.size(), kDTypes.size());
  for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(DTypeName(Type(i)), names[i]);
}

TEST(DType, ANumberThatIsNoTypeHasNoBytes) {
  for (const auto dtype : {Type(kDTypes.size()), Type(99), Type(255)}) {
    EXPECT_EQ(DTypeName(dtype), "unknown");
    EXPECT_EQ(ElementSize(dtype), 0U);
    EXPECT_FALSE(IsFloating(dtype));
    EXPECT_FALSE(IsLowPrecision(dtype));
  }
}

TEST(DType, FloatingAndLowTypesAreThoseOfTheTable) {
  std::string low;
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    EXPECT_EQ(IsFloating(Type(i)), kDTypes[i].floating());
    EXPECT_EQ(IsLowPrecision(Type(i)), kDTypes[i].low);
    if (IsLowPrecision(Type(i))) low += std::string(DTypeName(Type(i))) + " ";
  }
  EXPECT_EQ(low, "f16 bf16 ");
  EXPECT_TRUE(IsFloating(DType::kF64));
  EXPECT_FALSE(IsFloating(DType::kI8));
  EXPECT_TRUE(IsFloating(DType::kF8E5M2));
  EXPECT_EQ(ElementSize(DType::kBool), 1U);
  EXPECT_EQ(ElementSize(DType::kF64), 8U);
}

// The least subnormal and the largest power of two of a type are what a wider one must hold, with every bit between.
TEST(DType, WidensExactlyWhereTheReferenceRoundsNothing) {
  for (std::size_t from = 0; from < kDTypes.size(); ++from) {
    for (std::size_t to = 0; to < kDTypes.size(); ++to) {
      const DTypeInfo& info = kDTypes[from];
      if (!info.floating() || !kDTypes[to].floating()) {
        EXPECT_FALSE(WidensExactly(Type(from), Type(to)));
        continue;
      }
      bool exact = true;
      for (const double value : {std::ldexp(1.0, info.least_exponent - info.precision + 1),
                                 std::ldexp(1.0, info.largest_exponent), 1 + std::ldexp(1.0, 1 - info.precision)}) {
        exact = exact && reference::RoundTo(Type(to), value) == value;
      }
      EXPECT_EQ(WidensExactly(Type(from), Type(to)), exact) << info.name << " to " << kDTypes[to].name;
    }
  }
}

}  // namespace
}  // namespace mpc
