#include "frontend/inspect/precision_profile.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "frontend/inspect/overflow_diagnosis.h"

namespace mpc {
namespace {

constexpr int kBias = 127;

/// `count` elements of magnitude 2^exponent.
ValueStatistics Value(const std::string& cell, bool backward, int exponent, std::int64_t count) {
  ValueStatistics value;
  value.cell = cell;
  value.operation = "matmul";
  value.backward = backward;
  value.dtype = DType::kF16;
  value.exponents[static_cast<std::size_t>(exponent + kBias)] = count;
  value.largest = std::ldexp(1.0, exponent);
  return value;
}

TEST(PrecisionProfile, CountsWhatF16WouldLose) {
  PrecisionProfile profile;
  ValueStatistics value = Value("net/fc", false, 0, 10);
  value.exponents[-26 + kBias] = 20;  // rounds to zero
  value.exponents[-25 + kBias] = 30;  // rounds to the smallest subnormal
  value.exponents[-15 + kBias] = 20;
  value.exponents[16 + kBias] = 5;
  value.exponents[0] = 15;
  value.zeros = 15;
  profile.Add({value}, 1.0);
  const PrecisionProfile::Loss loss = profile.LossOfRow(profile.rows()[0], 1.0);
  EXPECT_DOUBLE_EQ(loss.lost, 0.20);
  EXPECT_DOUBLE_EQ(loss.subnormal, 0.50);
  EXPECT_DOUBLE_EQ(loss.overflown, 0.05);
}

TEST(PrecisionProfile, KeepsGradientsWithoutTheScaleTheyWereTakenAt) {
  PrecisionProfile profile;
  profile.Add({Value("net/fc", true, -10, 4)}, 1024.0);  // 2^-20 unscaled
  EXPECT_DOUBLE_EQ(profile.rows()[0].largest, std::ldexp(1.0, -20));
  EXPECT_DOUBLE_EQ(profile.LossOfRow(profile.rows()[0], 1.0).subnormal, 1.0);
  EXPECT_DOUBLE_EQ(profile.LossOfRow(profile.rows()[0], 1024.0).subnormal, 0.0);
}

TEST(PrecisionProfile, TheScaleDoesNotActOnActivations) {
  PrecisionProfile profile;
  profile.Add({Value("net/fc", false, -20, 4)}, 65536.0);
  EXPECT_DOUBLE_EQ(profile.LossOfRow(profile.rows()[0], 65536.0).subnormal, 1.0);
}

TEST(PrecisionProfile, TheBestScaleLosesLeastWithoutOverflow) {
  PrecisionProfile profile;
  profile.Add({Value("net/a", true, -30, 100), Value("net/b", true, 3, 1)}, 1.0);
  // 2^3 may grow by 2^12 at most; at 2^5 nothing of 2^-30 is lost, at 2^12 it is still subnormal.
  EXPECT_DOUBLE_EQ(profile.best_scale(), std::ldexp(1.0, 5));
  PrecisionProfile small;
  small.Add({Value("net/a", true, -30, 100)}, 1.0);
  EXPECT_DOUBLE_EQ(small.best_scale(), std::ldexp(1.0, 16));
}

TEST(PrecisionProfile, NamesCellsThatNoScaleHelps) {
  PrecisionProfile profile;
  profile.Add({Value("net/exp", false, 20, 3), Value("net/fc", false, 0, 3)}, 1.0);
  EXPECT_EQ(profile.LossyCells(), std::vector<std::string>{"net/exp"});
}

TEST(PrecisionProfile, SavesByEndingAndReadsItsLossyCellsBack) {
  PrecisionProfile profile;
  profile.Add({Value("net/exp", false, 20, 3), Value("net/fc", true, -10, 3)}, 8.0);
  const std::string base = ::testing::TempDir() + "/profile";
  ASSERT_TRUE(profile.Save(base + ".json").ok());
  ASSERT_TRUE(profile.Save(base + ".svg").ok());
  ASSERT_TRUE(profile.Save(base + ".txt").ok());
  const absl::StatusOr<std::vector<std::string>> cells = LossyCellsOfProfile(base + ".json");
  ASSERT_TRUE(cells.ok()) << cells.status();
  EXPECT_EQ(*cells, std::vector<std::string>{"net/exp"});
  EXPECT_TRUE(LossyCellsOfProfile(base + ".json", {.low = DType::kF16}).ok());
  const absl::Status other = LossyCellsOfProfile(base + ".json", {.low = DType::kBF16}).status();
  EXPECT_NE(std::string(other.message()).find("is a profile of f16, and the low type here is bf16"), std::string::npos);
  EXPECT_NE(profile.Save(base + ".png").message().find(".svg"), std::string::npos);
  std::ofstream(base + ".json") << "{\"rows\": [{\"cell\": 3}]}";
  EXPECT_NE(std::string(LossyCellsOfProfile(base + ".json").status().message()).find("no precision profile"),
            std::string::npos);
}

TEST(OverflowDiagnosis, NamesTheFirstValueThatIsNotFinite) {
  ValueStatistics weight = Value("fc.weight", false, 17, 6);
  weight.operation = "parameter";
  ValueStatistics bad = Value("net/fc", true, 2, 7);
  bad.exponents[255] = 3;
  ValueStatistics later = Value("net/conv", true, 2, 7);
  later.exponents[255] = 7;
  const std::string text = DiagnoseOverflow({weight, Value("net/fc", false, 5, 7), bad, later}, 65536.0);
  EXPECT_NE(text.find("backward pass: matmul for 'net/fc' (f16), 3 of 10 elements"), std::string::npos) << text;
  EXPECT_NE(text.find("parameter 'fc.weight' does not fit f16"), std::string::npos) << text;
  EXPECT_NE(text.find("loss scale 65536"), std::string::npos) << text;
  EXPECT_EQ(text.find("net/conv"), std::string::npos) << text;
}

TEST(OverflowDiagnosis, NamesWhatFollowsAnInputOfInfinities) {
  ValueStatistics mask = Value("mask", false, 0, 7);
  mask.operation = "input";
  mask.exponents[255] = 3;
  ValueStatistics sum = Value("net/attention", false, 2, 7), scaled = Value("net/head", false, 15, 9);
  sum.exponents[255] = 3;
  scaled.exponents[255] = 1;
  for (const DType low : {DType::kF16, DType::kBF16}) {
    ValueStatistics fitting = Value("net/fc", false, 1, 10);
    sum.dtype = scaled.dtype = fitting.dtype = low;
    mask.dtype = DType::kF32;
    const std::string text = DiagnoseOverflow({mask, sum, fitting, scaled}, 2.0);
    EXPECT_NE(text.find("first value that is not finite at loss scale 2: input 'mask', 3 of 10 elements"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("input 'mask': 3 of its 10 elements are not finite"), std::string::npos) << text;
    EXPECT_NE(text.find("computed and not finite: forward pass: matmul in 'net/attention'"), std::string::npos) << text;
    EXPECT_NE(text.find("computed and not finite: forward pass: matmul in 'net/head'"), std::string::npos) << text;
    EXPECT_EQ(text.find("does not fit"), std::string::npos) << text;
  }
}

TEST(OverflowDiagnosis, SaysThatNothingOfNanWeightsIsFinite) {
  ValueStatistics bias = Value("fc.bias", false, 0, 0);
  bias.operation = "parameter";
  bias.zeros = 10;
  bias.largest = 0;
  ValueStatistics weight = Value("fc.weight", false, 0, 0);
  weight.operation = "parameter";
  weight.exponents.fill(0);
  weight.exponents[255] = 10;
  weight.largest = 0;
  const std::string text = DiagnoseOverflow({bias, weight}, 1.0);
  EXPECT_NE(text.find("parameter 'fc.weight': none of its elements is finite"), std::string::npos) << text;
  EXPECT_EQ(text.find("largest finite magnitude"), std::string::npos) << text;
}

}  // namespace
}  // namespace mpc
