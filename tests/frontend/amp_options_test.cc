// amp::Options: what is accepted, what it means where it is left out, and what every contradiction answers.
#include "frontend/graph/amp_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "tests/frontend/error_of.h"

namespace mpc::amp {
namespace {

using mpc::testing::ErrorOf;
using ::testing::HasSubstr;

Precision Resolved(const Options& options, Front front) {
  absl::StatusOr<Precision> precision = ResolveOptions(options, front);
  EXPECT_TRUE(precision.ok()) << precision.status();
  return precision.value_or(Precision{});
}

Precision OfModel(const Options& options) { return Resolved(options, Front::kModel); }
Precision OfInitialize(const Options& options) { return Resolved(options, Front::kInitialize); }

struct Contradiction {
  const char* name;
  Options options;
  Front front;
  std::vector<std::string> message;  ///< parts of it: the option, what was given, what is accepted and why
};

class AmpContradiction : public ::testing::TestWithParam<Contradiction> {};

TEST_P(AmpContradiction, IsRefusedWithTheReason) {
  const absl::Status status = ResolveOptions(GetParam().options, GetParam().front).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const std::string& part : GetParam().message) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

const std::string kLevelList = "O0, O1, O2, O3 or auto";

INSTANTIATE_TEST_SUITE_P(
    Options, AmpContradiction,
    ::testing::Values(
        Contradiction{"UnknownLevel", {.level = "o4"}, Front::kModel, {"level 'o4'", kLevelList}},
        Contradiction{"ZeroForLetter", {.level = "02"}, Front::kInitialize, {"'02'", kLevelList, "not the digit zero"}},
        Contradiction{"O1KeepsNorms",
                      {.level = "O1", .keep_batchnorm_fp32 = true},
                      Front::kModel,
                      {"O1", "keep_batchnorm_fp32 = true", "already runs norms in f32", "O2 or O3"}},
        Contradiction{"DefaultLevelOfInitializeKeepsNorms",
                      {.keep_batchnorm_fp32 = "False"},
                      Front::kInitialize,
                      {"O1", "keep_batchnorm_fp32 = False", "already runs norms in f32"}},
        Contradiction{"O1WithMasters",
                      {.level = "O1", .master_weights = true},
                      Front::kInitialize,
                      {"O1", "master_weights = true", "never changes stored parameters"}},
        Contradiction{"O1WithoutMasters",
                      {.level = "O1", .master_weights = "false"},
                      Front::kInitialize,
                      {"O1", "master_weights = false", "never changes stored parameters"}},
        Contradiction{"AutoWithMasters",
                      {.level = "auto", .master_weights = true},
                      Front::kModel,
                      {"auto never changes stored parameters"}},
        Contradiction{
            "O0WithoutMasters", {.master_weights = false}, Front::kModel, {"O0", "master_weights = false", "full f32"}},
        Contradiction{
            "O0WithLowType", {.dtype = DType::kBF16}, Front::kModel, {"O0 is full f32", "bf16", "O1, O2, O3 or auto"}},
        Contradiction{"NoLowType", {.level = "O2", .dtype = "f64"}, Front::kModel, {"dtype = 'f64'", "f16 or bf16"}},
        Contradiction{"NoType", {.level = "O2", .dtype = "fp8"}, Front::kModel, {"dtype = 'fp8'", "f16 or bf16"}},
        Contradiction{"ScaleBelowOne",
                      {.level = "O2", .loss_scale = 0.5},
                      Front::kModel,
                      {"loss_scale = '0.5'", "\"dynamic\", \"derived\", \"none\" or a number >= 1"}},
        Contradiction{"ScaleNotANumber",
                      {.level = "O2", .loss_scale = std::nan("")},
                      Front::kInitialize,
                      {"loss_scale = 'nan'", "\"dynamic\", \"derived\", \"none\" or a number >= 1"}},
        Contradiction{"ScaleOfAnotherWord",
                      {.level = "O2", .loss_scale = "dynamik"},
                      Front::kInitialize,
                      {"loss_scale = 'dynamik'", "\"dynamic\", \"derived\", \"none\" or a number >= 1"}},
        Contradiction{"DerivedScaleOfNothingLow",
                      {.level = "O0", .loss_scale = "derived"},
                      Front::kModel,
                      {"level O0", "loss_scale = 'derived'", "nothing is low"}},
        Contradiction{"DerivedScaleOfBf16",
                      {.level = "O2", .dtype = "bf16", .loss_scale = "derived"},
                      Front::kModel,
                      {"dtype bf16", "loss_scale = 'derived'", "the range of f32"}},
        Contradiction{"DerivedScaleOfSeveralLosses",
                      {.level = "O2", .loss_scale = "derived", .num_losses = 2},
                      Front::kModel,
                      {"num_losses = 2", "loss_scale = 'derived'", "one scaler"}},
        Contradiction{"DerivedScaleOfInitialize",
                      {.level = "O2", .loss_scale = "derived"},
                      Front::kInitialize,
                      {"loss_scale = 'derived'", "of a Model", "\"dynamic\""}},
        Contradiction{
            "ScaleBeyondF32", {.level = "O2", .loss_scale = 1e39}, Front::kModel, {"loss_scale = '1e+39'", "2^126"}},
        Contradiction{"MinimumAboveMaximum",
                      {.level = "O2", .min_loss_scale = 1024, .max_loss_scale = "2"},
                      Front::kInitialize,
                      {"min_loss_scale = 1024", "max_loss_scale = 2"}},
        Contradiction{"MinimumAboveInit",
                      {.level = "O1", .min_loss_scale = 0x1p20},
                      Front::kInitialize,
                      {"initial scale", "65536", "1.04858e+06"}},
        Contradiction{"MaximumIsAWord",
                      {.level = "O1", .max_loss_scale = "large"},
                      Front::kInitialize,
                      {"max_loss_scale = 'large'", "a number"}},
        Contradiction{"NoBoolean",
                      {.level = "O2", .keep_batchnorm_fp32 = "yes"},
                      Front::kModel,
                      {"keep_batchnorm_fp32 = 'yes'", "true or false"}},
        Contradiction{"OutputsOfIntegers",
                      {.cast_model_outputs = DType::kI32},
                      Front::kModel,
                      {"cast_model_outputs = 'i32'", "f32, f16 or bf16"}},
        Contradiction{"PatchingAtO2",
                      {.level = "O2", .patch_torch_functions = true},
                      Front::kInitialize,
                      {"patch_torch_functions = true", "O2", "is what O1 is", "choose O1"}},
        Contradiction{"O1WithoutPatching",
                      {.patch_torch_functions = "False"},
                      Front::kInitialize,
                      {"patch_torch_functions = False", "is what O1 is"}},
        Contradiction{"InTwoLists",
                      {.level = "O1", .allow_add = {"exp"}, .deny_add = {"softmax", "exp"}},
                      Front::kModel,
                      {"'exp'", "allow_add", "deny_add"}},
        Contradiction{"PathInTwoLists",
                      {.level = "O1", .infer_add = {"net/fc1"}, .clear_add = {"net/fc1"}},
                      Front::kModel,
                      {"'net/fc1'", "infer_add", "clear_add"}},
        Contradiction{"EmptyEntry", {.level = "O1", .deny_add = {""}}, Front::kModel, {"deny_add", "empty"}},
        Contradiction{"NoLosses", {.num_losses = 0}, Front::kInitialize, {"num_losses = 0", "at least 1"}},
        Contradiction{"ManyLosses", {.num_losses = 1025}, Front::kModel, {"num_losses = 1025", "at most 1024"}},
        Contradiction{"DisabledIsChecked", {.level = "O5", .enabled = false}, Front::kModel, {"level 'O5'"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(AmpOptions, LevelOfAModelIsO0AndOfInitializeO1) {
  EXPECT_EQ(OfModel({}).level, "O0");
  EXPECT_EQ(OfInitialize({}).level, "O1");
}

TEST(AmpOptions, NormsAreKeptAtO2AndNotAtO3) {
  EXPECT_EQ(OfModel({.level = "O2"}).keep_batchnorm_fp32, true);
  EXPECT_EQ(OfModel({.level = "O3"}).keep_batchnorm_fp32, false);
  EXPECT_EQ(OfModel({.level = "O1"}).keep_batchnorm_fp32, std::nullopt);
}

TEST(AmpOptions, ApexStoresNoMastersAtO3) {
  EXPECT_FALSE(OfInitialize({.level = "O3"}).master_weights);
  EXPECT_TRUE(OfInitialize({.level = "O2"}).master_weights);
  EXPECT_TRUE(OfModel({.level = "O3"}).master_weights);
  EXPECT_TRUE(OfInitialize({.level = "O3", .master_weights = "True"}).master_weights);
}

TEST(AmpOptions, ModelScalesAsMindSporeDoes) {
  for (const char* level : {"O1", "O2"}) {
    const LossScaleConfig scale = OfModel({.level = level}).loss_scale;
    EXPECT_EQ(scale.mode, LossScaleConfig::Mode::kDynamic);
    EXPECT_EQ(scale.init, 0x1p24);
    EXPECT_EQ(scale.minimum, 1);
    EXPECT_TRUE(scale.skip);
  }
  for (const char* level : {"O0", "O3"}) {
    EXPECT_EQ(OfModel({.level = level}).loss_scale.mode, LossScaleConfig::Mode::kNone);
  }
}

TEST(AmpOptions, InitializeScalesAsApexDoes) {
  const LossScaleConfig scale = OfInitialize({.level = "O2"}).loss_scale;
  EXPECT_EQ(scale.mode, LossScaleConfig::Mode::kDynamic);
  EXPECT_EQ(scale.init, 0x1p16);
  EXPECT_EQ(scale.maximum, 0x1p24);
  EXPECT_EQ(scale.growth_interval, 2000);
  EXPECT_EQ(OfInitialize({.level = "O2", .max_loss_scale = 1024}).loss_scale.init, 1024);
}

TEST(AmpOptions, AMP_19_AStaticScaleOfApexDoesNotSkip) {
  EXPECT_FALSE(OfInitialize({.level = "O2", .loss_scale = 128.0}).loss_scale.skip);
  EXPECT_TRUE(OfModel({.level = "O2", .loss_scale = 128.0}).loss_scale.skip);
}

TEST(AmpOptions, BF16ChecksAndSkipsAtScaleOne) {
  for (const Front front : {Front::kModel, Front::kInitialize}) {
    for (const char* level : {"O1", "O2", "auto"}) {
      const LossScaleConfig scale = Resolved({.level = level, .dtype = "bf16"}, front).loss_scale;
      EXPECT_EQ(scale.mode, LossScaleConfig::Mode::kStatic);
      EXPECT_EQ(scale.init, 1);
      EXPECT_TRUE(scale.skip);
    }
    EXPECT_EQ(Resolved({.level = "O3", .dtype = "bf16"}, front).loss_scale.mode, LossScaleConfig::Mode::kNone);
  }
}

TEST(AmpOptions, TextsMeanWhatTheyName) {
  const Precision precision = OfModel({.level = "O2",
                                       .dtype = "bfloat16",
                                       .keep_batchnorm_fp32 = "False",
                                       .loss_scale = "128.0",
                                       .cast_model_outputs = "float16"});
  EXPECT_EQ(precision.dtype, DType::kBF16);
  EXPECT_EQ(precision.keep_batchnorm_fp32, false);
  EXPECT_EQ(precision.loss_scale.init, 128);
  EXPECT_EQ(precision.cast_model_outputs, DType::kF16);
}

TEST(AmpOptions, AnExplicitNoneSwitchesScalingOff) {
  EXPECT_EQ(OfModel({.level = "O2", .loss_scale = "none"}).loss_scale.mode, LossScaleConfig::Mode::kNone);
}

TEST(AmpOptions, BoundsOfAStaticScaleAreIgnored) {
  EXPECT_EQ(OfInitialize({.level = "O2", .loss_scale = 4096, .max_loss_scale = 8}).loss_scale.init, 4096);
}

TEST(AmpOptions, PatchingIsWhatO1Is) {
  EXPECT_EQ(OfInitialize({.patch_torch_functions = true}).level, "O1");
  for (const char* level : {"O0", "O2", "O3"}) {
    EXPECT_EQ(OfInitialize({.level = level, .patch_torch_functions = false}).level, level) << "apex's own value";
  }
}

TEST(AmpOptions, AMP_28_DisabledIsO0WithoutScaler) {
  const Precision precision = OfInitialize({.level = "O2", .cast_model_outputs = "f16", .enabled = false});
  EXPECT_EQ(precision.level, "O0");
  EXPECT_EQ(precision.loss_scale.mode, LossScaleConfig::Mode::kNone);
  EXPECT_EQ(precision.cast_model_outputs, std::nullopt);
}

TEST(AmpOptions, AnnouncesDefaultsAndWhatIsInEffect) {
  const Options options{.level = "O2", .dtype = "bf16", .keep_batchnorm_fp32 = false};
  ::testing::internal::CaptureStderr();
  Announce(options, OfModel(options), Front::kModel);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "amp: defaults of level O2: dtype f16, keep_batchnorm_fp32 true, master_weights true, loss_scale dynamic "
            "from 16777216, cast_model_outputs f32\n"
            "amp: in effect at level O2: dtype bf16, keep_batchnorm_fp32 false, master_weights true, loss_scale 1, "
            "cast_model_outputs f32\n");
  ::testing::internal::CaptureStderr();
  Announce({.level = "O2", .verbosity = 0}, OfModel({.level = "O2"}), Front::kModel);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

LossScaleConfig DynamicConfig(double init, double minimum, double maximum) {
  LossScaleConfig config;
  config.mode = LossScaleConfig::Mode::kDynamic;
  config.init = init;
  config.minimum = minimum;
  config.maximum = maximum;
  return config;
}

// Adding a member breaks this test until it is listed: the bindings are as many as the members.
TEST(AmpOptions, AreAllListed) {
  Options options;
  std::set<const void*> listed;
  VisitOptions(options, [&](const OptionInfo& info, auto& option) {
    EXPECT_TRUE(listed.insert(&option).second) << info.name;
    EXPECT_TRUE(absl::EndsWith(info.flag, absl::StrReplaceAll(info.name, {{"_", "-"}}))) << info.flag;
  });
  const auto expect_listed = [&](const auto&... members) {
    EXPECT_EQ(listed.size(), sizeof...(members));
    EXPECT_TRUE((listed.contains(&members) && ...));
  };
  auto& [level, dtype, keep_batchnorm_fp32, master_weights, loss_scale, cast_model_outputs, min_loss_scale,
         max_loss_scale, patch_torch_functions, num_losses, enabled, verbosity, allow_add, deny_add, infer_add,
         clear_add] = options;
  expect_listed(level, dtype, keep_batchnorm_fp32, master_weights, loss_scale, cast_model_outputs, min_loss_scale,
                max_loss_scale, patch_torch_functions, num_losses, enabled, verbosity, allow_add, deny_add, infer_add,
                clear_add);
}

TEST(LossScaleConfig, NamesLimitsThatContradictEachOther) {
  EXPECT_EQ(ErrorOf(DynamicConfig(4, 4, 4).Validate()), "");
  EXPECT_THAT(ErrorOf(DynamicConfig(4, 8, 2).Validate()), HasSubstr("the minimum 8 must not exceed the maximum 2"));
  EXPECT_THAT(ErrorOf(DynamicConfig(2, 4, 8).Validate()), HasSubstr("the initial scale 2 must lie in [4, 8]"));
  EXPECT_THAT(ErrorOf(DynamicConfig(16, 4, 8).Validate()), HasSubstr("the initial scale 16 must lie in [4, 8]"));
}

TEST(LossScaler, BeginsAtOneWhereNothingIsScaled) {
  LossScaleConfig config;
  config.mode = LossScaleConfig::Mode::kNone;
  config.init = 1024;
  EXPECT_EQ(LossScaler(config).scale(), 1);
  config.mode = LossScaleConfig::Mode::kStatic;
  EXPECT_EQ(LossScaler(config).scale(), 1024);
}

TEST(LossScaler, RefusesScalesWhoseReciprocalIsNotNormal) {
  LossScaler scaler(DynamicConfig(4, 1, 8));
  for (double scale : {0x1p127, 0x1p-127, 0.0, -1.0}) {
    EXPECT_THAT(ErrorOf(scaler.SetScale(scale)), HasSubstr("must be in [2^-126, 2^126]")) << scale;
  }
  EXPECT_EQ(scaler.scale(), 4);
  EXPECT_TRUE(scaler.SetScale(0x1p126).ok());
  EXPECT_EQ(scaler.scale(), 0x1p126);
}

TEST(DynamicLossScaleManager, BacksOffByTheReciprocalOfItsFactor) {
  const LossScaleConfig config = DynamicLossScaleManager({.scale_factor = 4}).config();
  EXPECT_EQ(config.growth, 4);
  EXPECT_EQ(config.backoff, 0.25);
}

}  // namespace
}  // namespace mpc::amp
