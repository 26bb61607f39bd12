// AMP-29: getters, setters and states of AmpScaler and GradScaler.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "tests/frontend/error_of.h"
#include "tests/training/scaler_steps.h"

namespace mpc::testing {
namespace {

using amp::AmpScaler;
using amp::GradScaler;
using ::testing::HasSubstr;

TEST(AmpScaler, AMP_29_GettersAndSettersRoundTrip) {
  AmpScaler scaler;
  EXPECT_TRUE(scaler.IsEnable());
  EXPECT_TRUE(scaler.IsUseDynamicLossScaling());
  EXPECT_EQ(scaler.GetInitLossScaling(), 32768);
  EXPECT_EQ(scaler.GetIncrRatio(), 2);
  EXPECT_EQ(scaler.GetDecrRatio(), 0.5);
  EXPECT_EQ(scaler.GetIncrEveryNSteps(), 1000);
  EXPECT_EQ(scaler.GetDecrEveryNNanOrInf(), 1);
  MPC_EXPECT_OK(scaler.SetInitLossScaling(512));
  MPC_EXPECT_OK(scaler.SetIncrRatio(4));
  MPC_EXPECT_OK(scaler.SetDecrRatio(0.125));
  MPC_EXPECT_OK(scaler.SetIncrEveryNSteps(7));
  MPC_EXPECT_OK(scaler.SetDecrEveryNNanOrInf(3));
  EXPECT_EQ(scaler.GetInitLossScaling(), 512);
  EXPECT_EQ(scaler.scaler().scale(), 512) << "the current scale as well";
  EXPECT_EQ(scaler.GetIncrRatio(), 4);
  EXPECT_EQ(scaler.GetDecrRatio(), 0.125);
  EXPECT_EQ(scaler.GetIncrEveryNSteps(), 7);
  EXPECT_EQ(scaler.GetDecrEveryNNanOrInf(), 3);
}

TEST(AmpScaler, AMP_29_SettersRejectWhatTheConstructorRejects) {
  EXPECT_FALSE(AmpScaler({.init_loss_scaling = 0.5}).status().ok());
  EXPECT_FALSE(AmpScaler({.incr_ratio = 1}).status().ok());
  EXPECT_FALSE(AmpScaler({.decr_ratio = 1}).status().ok());
  EXPECT_FALSE(AmpScaler({.incr_every_n_steps = 0}).status().ok());
  EXPECT_FALSE(AmpScaler({.decr_every_n_nan_or_inf = 0}).status().ok());
  AmpScaler scaler;
  const amp::ScalerState before = scaler.StateDict();
  EXPECT_THAT(ErrorOf(scaler.SetInitLossScaling(0.5)), HasSubstr("AmpScaler: loss scale: the scale must be"));
  EXPECT_FALSE(scaler.SetInitLossScaling(kNan).ok());
  EXPECT_FALSE(scaler.SetIncrRatio(1).ok());
  EXPECT_FALSE(scaler.SetIncrRatio(kInfinity).ok());
  EXPECT_FALSE(scaler.SetDecrRatio(0).ok());
  EXPECT_FALSE(scaler.SetDecrRatio(1).ok());
  EXPECT_FALSE(scaler.SetIncrEveryNSteps(0).ok());
  EXPECT_FALSE(scaler.SetDecrEveryNNanOrInf(-1).ok());
  EXPECT_EQ(scaler.StateDict(), before);
}

TEST(AmpScaler, AMP_29_SettersActWithoutARecompile) {
  ScalerStep step{AmpScaler({.init_loss_scaling = 64})};
  Model model(step);
  const auto run = [&](float gradient) { return model.Train(1, OneColumn({Tensor::Full({1}, gradient)})); };
  MPC_ASSERT_OK(run(1.0f));
  MPC_ASSERT_OK(step.scaler.SetInitLossScaling(1024));
  MPC_ASSERT_OK(step.scaler.SetDecrRatio(0.25));
  MPC_ASSERT_OK(run(kInfinity));
  EXPECT_EQ(step.scaler.scaler().scale(), 256);
  MPC_ASSERT_OK(step.scaler.SetIncrEveryNSteps(1));
  MPC_ASSERT_OK(step.scaler.SetIncrRatio(8));
  MPC_ASSERT_OK(run(1.0f));
  EXPECT_EQ(step.scaler.scaler().scale(), 2048);
  EXPECT_EQ(model.loss_scale(), 2048);
  EXPECT_EQ(model.skipped_steps(), 1);
  EXPECT_EQ(model.compiled().size(), 1u);
}

TEST(AmpScaler, AMP_29_StateDictRoundTrips) {
  ScalerStep step{AmpScaler({.init_loss_scaling = 64, .decr_every_n_nan_or_inf = 3})};
  MPC_ASSERT_OK(step.Run(kInfinity));
  const amp::ScalerState state = step.scaler.StateDict();
  EXPECT_THAT(state,
              ::testing::ElementsAre(::testing::Pair("decr_count", 1), ::testing::Pair("decr_every_n_nan_or_inf", 3),
                                     ::testing::Pair("decr_ratio", 0.5), ::testing::Pair("incr_count", 0),
                                     ::testing::Pair("incr_every_n_steps", 1000), ::testing::Pair("incr_ratio", 2),
                                     ::testing::Pair("scale", 64), ::testing::Pair("use_dynamic_loss_scaling", 1)));
  AmpScaler other;
  MPC_ASSERT_OK(other.LoadStateDict(state));
  EXPECT_EQ(other.StateDict(), state);
}

TEST(AmpScaler, AMP_29_StatesThatDoNotFitChangeNothing) {
  AmpScaler scaler;
  const amp::ScalerState before = scaler.StateDict();
  EXPECT_THAT(ErrorOf(scaler.LoadStateDict({})), HasSubstr("was it saved from a disabled scaler?"));
  amp::ScalerState wrong = before;
  wrong.erase("scale");
  wrong.erase("incr_count");
  wrong["growth"] = 2;
  EXPECT_THAT(ErrorOf(scaler.LoadStateDict(wrong)),
              HasSubstr("'scale' is missing, 'incr_count' is missing, 'growth' is unknown"));
  for (const auto& [key, value] : std::map<std::string, double>{
           {"scale", 0}, {"incr_ratio", 1}, {"decr_ratio", 2}, {"incr_every_n_steps", 0}, {"incr_count", -1}}) {
    wrong = before;
    wrong[key] = value;
    EXPECT_FALSE(scaler.LoadStateDict(wrong).ok()) << key;
    EXPECT_EQ(scaler.StateDict(), before) << key;
  }
}

TEST(AmpScaler, DisabledScalesAndSkipsNothing) {
  ScalerStep step{AmpScaler({.enable = false})};
  MPC_ASSERT_OK(step.Run(2.0f));
  EXPECT_EQ(step.Weight(), -2.0f);
  MPC_ASSERT_OK(step.Run(kInfinity));
  EXPECT_FALSE(std::isfinite(step.Weight()));
  EXPECT_TRUE(step.scaler.StateDict().empty());
  EXPECT_FALSE(step.scaler.IsEnable());
  AmpScaler enabled;
  EXPECT_FALSE(enabled.LoadStateDict(step.scaler.StateDict()).ok());
}

TEST(GradScaler, AMP_29_GettersSettersAndState) {
  GradScaler scaler;
  EXPECT_EQ(scaler.GetScale(), 65536);
  EXPECT_EQ(scaler.GetGrowthFactor(), 2);
  EXPECT_EQ(scaler.GetBackoffFactor(), 0.5);
  EXPECT_EQ(scaler.GetGrowthInterval(), 2000);
  MPC_EXPECT_OK(scaler.SetScale(16));
  MPC_EXPECT_OK(scaler.SetGrowthFactor(3));
  MPC_EXPECT_OK(scaler.SetBackoffFactor(0.25));
  MPC_EXPECT_OK(scaler.SetGrowthInterval(9));
  EXPECT_FALSE(scaler.SetScale(0).ok());
  EXPECT_FALSE(scaler.SetGrowthFactor(0.9).ok());
  EXPECT_FALSE(scaler.SetBackoffFactor(1.5).ok());
  EXPECT_FALSE(scaler.SetGrowthInterval(0).ok());
  const amp::ScalerState state = scaler.StateDict();
  EXPECT_EQ(state, (amp::ScalerState{{"scale", 16},
                                     {"growth_factor", 3},
                                     {"backoff_factor", 0.25},
                                     {"growth_interval", 9},
                                     {"_growth_tracker", 0}}));
  GradScaler other;
  MPC_EXPECT_OK(other.LoadStateDict(state));
  EXPECT_EQ(other.StateDict(), state);
  EXPECT_FALSE(other.LoadStateDict({}).ok());
  EXPECT_TRUE(GradScaler({.enabled = false}).StateDict().empty());
}

TEST(ScalerState, CountsAreWholeNumbersThatI32Holds) {
  GradScaler grad_scaler;
  AmpScaler amp_scaler;
  const amp::ScalerState grad_state = grad_scaler.StateDict(), amp_state = amp_scaler.StateDict();
  for (const double value : {1.5, -1.0, 0x1p31, 1e300, static_cast<double>(kInfinity), static_cast<double>(kNan)}) {
    const auto refuses = [&](auto& scaler, const amp::ScalerState& state, const char* key) {
      amp::ScalerState wrong = state;
      wrong[key] = value;
      EXPECT_THAT(ErrorOf(scaler.LoadStateDict(wrong)), HasSubstr(absl::StrCat("'", key, "' is ", value)));
      EXPECT_EQ(scaler.StateDict(), state) << key << " " << value;
    };
    for (const char* key : {"growth_interval", "_growth_tracker"}) refuses(grad_scaler, grad_state, key);
    for (const char* key :
         {"incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_count", "decr_count", "use_dynamic_loss_scaling"}) {
      refuses(amp_scaler, amp_state, key);
    }
  }
  amp::ScalerState wrong = grad_state;
  wrong["growth_interval"] = 1.5;
  EXPECT_EQ(ErrorOf(grad_scaler.LoadStateDict(wrong)),
            "GradScaler: the state does not fit: 'growth_interval' is 1.5; whole numbers in [0, 2^31) are accepted");
  EXPECT_THAT(ErrorOf(grad_scaler.SetGrowthInterval(std::int64_t{1} << 32)),
              HasSubstr("an interval must be below 2^31"));
  EXPECT_EQ(grad_scaler.GetGrowthInterval(), 2000);
}

}  // namespace
}  // namespace mpc::testing
