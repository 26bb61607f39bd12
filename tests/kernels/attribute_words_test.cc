// The words that attributes take: their tables, their reading and the defaults.
#include "kernels/attribute_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "kernels/reference/reference.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

template <typename E>
class EnumWords : public testing::Test {};
using Enums = testing::Types<DataFormat, PadMode, LossReduction, Activation, Approximation, Distribution, LowCopy,
                             Interpolation, Coordinates>;
TYPED_TEST_SUITE(EnumWords, Enums);

TYPED_TEST(EnumWords, EveryNameIsReadAsTheValueThatPrintsIt) {
  const auto& names = NamesOf<TypeParam>();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto value = static_cast<TypeParam>(i);
    EXPECT_EQ(NameOf(value), names[i]);
    EXPECT_EQ(ParseEnum<TypeParam>(names[i]), value) << names[i];
  }
}

TYPED_TEST(EnumWords, NothingElseIsRead) {
  for (const char* name : {"", "None", "nchw", "unknown", "relu "}) {
    EXPECT_EQ(ParseEnum<TypeParam>(name), std::nullopt) << name;
  }
  EXPECT_EQ(NameOf(static_cast<TypeParam>(200)), "unknown");
}

// Programs and the IR hold them.
TEST(Words, AreThoseOfTheDialect) {
  EXPECT_THAT(NamesOf<DataFormat>(), ElementsAre("NCHW", "NHWC"));
  EXPECT_THAT(NamesOf<PadMode>(), ElementsAre("valid", "same", "pad"));
  EXPECT_THAT(NamesOf<LossReduction>(), ElementsAre("none", "mean", "sum"));
  EXPECT_THAT(NamesOf<Activation>(), ElementsAre("none", "relu", "sigmoid", "tanh", "gelu", "gelu_tanh"));
  EXPECT_THAT(NamesOf<Approximation>(), ElementsAre("none", "tanh"));
  EXPECT_THAT(NamesOf<Distribution>(), ElementsAre("uniform", "normal", "truncated_normal"));
  EXPECT_THAT(NamesOf<LowCopy>(), ElementsAre("none", "f16", "bf16"));
  EXPECT_THAT(NamesOf<Interpolation>(), ElementsAre("nearest", "bilinear"));
  EXPECT_THAT(NamesOf<Coordinates>(), ElementsAre("asymmetric", "half_pixel", "align_corners"));
}

TEST(KnownAttributes, AreReadWithTheirDefaults) {
  const Attributes none;
  EXPECT_EQ(none.Get(attribute::kDataFormat), DataFormat::kNCHW);
  EXPECT_EQ(none.Get(attribute::kReduction), LossReduction::kMean);
  EXPECT_EQ(none.Get(attribute::kGroups), 1);
  EXPECT_TRUE(none.Get(attribute::kCountIncludePad));
  EXPECT_EQ(none.Get(attribute::kEpsilon), 1e-5f);
  EXPECT_THAT(none.Get(attribute::kPadding), ElementsAre(0, 0, 0, 0));
  const Attributes given = {
      {"data_format", "NHWC"},      {"reduction", "sum"}, {"groups", std::int64_t{3}},
      {"count_include_pad", false}, {"epsilon", 0.1},     {"padding", std::vector<std::int64_t>{1, 2, 3, 4}}};
  EXPECT_EQ(given.Get(attribute::kDataFormat), DataFormat::kNHWC);
  EXPECT_EQ(given.Get(attribute::kReduction), LossReduction::kSum);
  EXPECT_EQ(given.Get(attribute::kGroups), 3);
  EXPECT_FALSE(given.Get(attribute::kCountIncludePad));
  EXPECT_EQ(given.Get(attribute::kEpsilon), 0.1f);
  EXPECT_THAT(given.Get(attribute::kPadding), ElementsAre(1, 2, 3, 4));
}

TEST(ReadWord, TakesTheWordOrTheDefault) {
  EXPECT_EQ(ReadWord({{"pad_mode", "same"}}, attribute::kPadMode).value(), PadMode::kSame);
  EXPECT_EQ(ReadWord({}, attribute::kPadMode).value(), PadMode::kValid);
  EXPECT_EQ(ReadWord({{"distribution", "normal"}}, attribute::kDistribution).value(), Distribution::kNormal);
}

TEST(ReadWord, RefusesAnotherWithTheAcceptedOnes) {
  EXPECT_EQ(ReadWord({{"pad_mode", "full"}}, attribute::kPadMode).status(),
            absl::InvalidArgumentError(R"(pad_mode is one of "valid", "same", "pad"; got "full")"));
  EXPECT_EQ(ReadWord({{"pad_mode", std::int64_t{1}}}, attribute::kPadMode).status(),
            absl::InvalidArgumentError(R"(pad_mode is one of "valid", "same", "pad"; got what is no word)"));
  EXPECT_EQ(
      ReadWord({}, attribute::kDistribution).status(),
      absl::InvalidArgumentError(R"(distribution is one of "uniform", "normal", "truncated_normal"; got nothing)"));
}

TEST(CheckWords, RefusesTheWordOfAnyAttribute) {
  EXPECT_TRUE(CheckWords("conv2d", {}).ok());
  EXPECT_TRUE(CheckWords("conv2d", {{"data_format", "NHWC"}, {"activation", "gelu"}, {"layout", "CHWN"}}).ok());
  EXPECT_EQ(CheckWords("conv2d", {{"activation", "relu"}, {"data_format", "CHWN"}}),
            absl::InvalidArgumentError(R"(mpc.conv2d: data_format is one of "NCHW", "NHWC"; got "CHWN")"));
  for (const char* name :
       {"data_format", "pad_mode", "reduction", "activation", "approximate", "shadow", "distribution"}) {
    const absl::Status status = CheckWords("op", {{name, "other"}});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
  }
}

TEST(CheckWords, GuardsTheReference) {
  std::vector<reference::Tensor> y = {{{DType::kF32, {1}}, {}}};
  const absl::Status status =
      reference::Run("gelu", {{"approximate", "exact"}}, {{{{DType::kF32, {1}}, {1}}}}, absl::MakeSpan(y));
  EXPECT_EQ(status, absl::InvalidArgumentError(R"(mpc.gelu: approximate is one of "none", "tanh"; got "exact")"));
}

}  // namespace
}  // namespace mpc
