// Names of a loss scaler's entries, made and read in one place.
#include "runtime/scaler_field.h"

#include <gtest/gtest.h>

namespace mpc {
namespace {

TEST(ScalerField, NamesAreReadAsTheyAreWritten) {
  for (std::size_t i = 0; i < kScalerFieldNames.size(); ++i) {
    const auto field = static_cast<ScalerField>(i);
    for (const char* scaler : {"scaler", "scaler0", "gan.scaler2"}) {
      EXPECT_EQ(ScalerFieldOf(ScalerEntryName(scaler, field)), field) << ScalerEntryName(scaler, field);
    }
  }
  EXPECT_EQ(ScalerEntryName("scaler", ScalerField::kBadLimit), "scaler.bad_limit");
}

TEST(ScalerField, OtherNamesAreNone) {
  for (const char* name :
       {"", "scale", ".scale", "scaler.", "scaler", "scaler.scales", "scaler.new_scale", "scale.r"}) {
    EXPECT_EQ(ScalerFieldOf(name), std::nullopt) << name;
  }
}

TEST(ScalerField, FiveMoveAndFiveAreOfF32) {
  int moving = 0;
  int f32 = 0;
  for (std::size_t i = 0; i < kScalerFieldNames.size(); ++i) {
    moving += !IsScalerSetting(static_cast<ScalerField>(i));
    f32 += IsF32(static_cast<ScalerField>(i));
  }
  EXPECT_EQ(moving, 5);
  EXPECT_EQ(f32, 5);
  EXPECT_FALSE(IsScalerSetting(ScalerField::kConsecutive));
  EXPECT_TRUE(IsF32(ScalerField::kMaximum));
  EXPECT_FALSE(IsF32(ScalerField::kInterval));
}

}  // namespace
}  // namespace mpc
