// Clipping of unscaled gradients, in the Model's own step and by hand.
#include "frontend/nn/clip.h"

#include <gmock/gmock.h>

#include "tests/training/scaler_steps.h"
#include "tests/training/several_losses.h"

namespace mpc::testing {
namespace {

using ::testing::HasSubstr;

class NormRecorder : public Callback {
 public:
  void OnStepEnd(RunContext& context) override { norms.push_back(context.gradient_norm.value_or(-1)); }
  std::vector<double> norms;
};

/// One step of a Probe with these gradients; returns how far the weights moved.
std::vector<float> Moved(const std::vector<float>& gradient, ModelOptions options, NormRecorder* norms = nullptr) {
  const auto size = static_cast<std::int64_t>(gradient.size());
  Probe network(size);
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  Model model(network, loss, optimizer, std::move(options));
  const data::Row row = {Tensor::From(gradient, {size}), Tensor::Full({1}, 0.0)};
  NormRecorder own;
  MPC_EXPECT_OK(model.Train(1, Batches({row}), {norms != nullptr ? *norms : own}));
  std::vector<float> moved = network.weight.Value()->ToFloats();
  for (float& value : moved) value = -value;
  return moved;
}

TEST(Clip, GlobalNormLimitsTheNormAndTellsIt) {
  NormRecorder norms;
  const std::vector<float> moved =
      Moved({3, 4, 0, 12}, {.clip_global_norm = 6.5, .record_gradient_norm = true}, &norms);
  // factor 6.5 / (13 + 1e-6): a few f32 roundings.
  const std::vector<float> expected = {1.5, 2, 0, 6};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(moved[i], expected[i], expected[i] * 4 * 0x1p-23 + 1e-6);
  EXPECT_THAT(norms.norms, ::testing::ElementsAre(13));
  EXPECT_EQ(Moved({3, 4, 0, 12}, {.clip_global_norm = 20}), (std::vector<float>{3, 4, 0, 12}))
      << "a smaller norm stays";
}

// The squares of these gradients overflow f32, and the last norm does too.
TEST(Clip, FiniteGradientsOfAnySizeAreClipped) {
  for (const Level& at : {Level{"O0", {}}, Level{"O2", DType::kBF16}}) {
    const std::string& level = at.level;
    NormRecorder norms;
    const auto moved = [&](const std::vector<float>& gradient) {
      // A scale of 1, which overflows no gradient.
      return Moved(gradient,
                   {.amp_level = level,
                    .loss_scale_manager = DynamicScale(1, 2, 0.5, 100),
                    .amp_dtype = at.dtype,
                    .clip_global_norm = 1.0,
                    .record_gradient_norm = true},
                   &norms);
    };
    // bf16 holds these: 2^64, and 3 and 4 times 2^120.
    EXPECT_THAT(moved({0x1p64f, 0}), ::testing::ElementsAre(1, 0)) << level;
    EXPECT_THAT(moved({0x3p120f, -0x4p120f}),
                ::testing::ElementsAre(::testing::FloatEq(0.6f), ::testing::FloatEq(-0.8f)))
        << level;
    EXPECT_THAT(norms.norms, ::testing::ElementsAre(0x1p64, 0x5p120)) << level;
    for (float value : moved({0x1.8p127f, 0x1.8p127f})) EXPECT_TRUE(value >= 0 && value <= 1) << level << " " << value;
    EXPECT_EQ(norms.norms.back(), kInfinity) << "f32 tells no larger norm";
  }
}

/// The gradient of two losses together, clipped.
class ClippedSumStep : public nn::TrainingStep {
 public:
  MPC_CELL(ClippedSumStep, network)
  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = reduce_sum(network(x)), loss_y = reduce_sum(network(y));
    const Tensor sum = ops::Backward(loss_x, {network.weight})[0] + ops::Backward(loss_y, {network.weight})[0];
    return ops::Depend(loss_x + loss_y, optimizer(ops::ClipByGlobalNorm({sum}, 1.0).gradients));
  }
  Probe network;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0}};
};

TEST(Clip, ANormThatIsNotFiniteSkipsAsAGradientDoes) {
  LossScaleConfig scale = DynamicScale(1, 2, 0.5, 100);
  scale.minimum = 0.25;
  for (std::int64_t scalers : {1, 2}) {
    ClippedSumStep step;
    Model model(step, {.amp_level = "O0", .loss_scale_manager = scale, .amp = {.num_losses = scalers}});
    ::testing::internal::CaptureStderr();
    MPC_ASSERT_OK(model.Train(1, TwoNumbers(3e38f, 3e38f)));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the norm of the gradients is not finite"));
    EXPECT_EQ(WeightOf(step.network), 0.0f);
    EXPECT_EQ(model.skipped_steps(), scalers) << "each scaler counts";
    EXPECT_EQ(model.loss_scale(), 0.5);
    MPC_ASSERT_OK(model.Train(1, TwoNumbers(3e37f, 1e37f)));
    EXPECT_FLOAT_EQ(WeightOf(step.network), -1.0f);
    EXPECT_EQ(model.skipped_steps(), scalers);
  }
}

/// Clips twice the gradient under a scaler that the step calls.
class ScaledClippedStep : public nn::TrainingStep {
 public:
  MPC_CELL(ScaledClippedStep, network)
  Tensor Construct(Tensor x) {
    const Tensor scaled = scaler.Scale(ProbeLoss(network, x));
    const std::vector<Tensor> gradients = scaler.Unscale(optimizer, ops::Backward(scaled, optimizer.parameters()));
    const bool stepped = scaler.Step(optimizer, ops::ClipByGlobalNorm({gradients[0] * 2.0}, 1.0).gradients);
    return ops::Depend(scaled, stepped && scaler.Update());
  }
  Probe network;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0}};
  amp::GradScaler scaler{{.init_scale = 1}};
};

TEST(Clip, ANormThatIsNotFiniteSkipsUnderAScalerThatTheStepCalls) {
  ScaledClippedStep step;
  Model model(step);
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(model.Train(1, OneColumn({Tensor::Full({1}, 2e38)})));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the norm of the gradients is not finite"));
  EXPECT_EQ(WeightOf(step.network), 0.0f);
  EXPECT_EQ(model.skipped_steps(), 1);
  EXPECT_EQ(step.scaler.scaler().scale(), 0.5);
  MPC_ASSERT_OK(model.Train(1, OneColumn({Tensor::Full({1}, 3e37)})));
  EXPECT_FLOAT_EQ(WeightOf(step.network), -1.0f);
  EXPECT_EQ(model.skipped_steps(), 1);
}

TEST(Clip, ValueLimitsEveryElement) {
  EXPECT_EQ(Moved({3, -4, 0.5, 12}, {.clip_value = 2.0}), (std::vector<float>{2, -2, 0.5, 2}));
}

TEST(Clip, NormIsToldOnRequestOnly) {
  NormRecorder norms;
  Moved({3, 4}, {}, &norms);
  Moved({3, 4}, {.record_gradient_norm = true}, &norms);
  EXPECT_THAT(norms.norms, ::testing::ElementsAre(-1, 5));
}

class ClipAtLevel : public ::testing::TestWithParam<Level> {};

// AMP-23: the clip acts on unscaled gradients, so that powers of two change nothing.
TEST_P(ClipAtLevel, AMP_23_UnscaleThenClipEqualsTheF32Control) {
  const auto options = [](const Level& level, LossScaleChoice scale) {
    return ModelOptions{.amp_level = level.level,
                        .loss_scale_manager = scale,
                        .amp_dtype = level.dtype,
                        .clip_global_norm = 2.5,
                        .record_gradient_norm = true};
  };
  NormRecorder norms;
  const std::vector<float> scaled =
      Moved({3, 4}, options(GetParam(), FixedLossScaleManager({.loss_scale = 1024})), &norms);
  EXPECT_EQ(scaled, Moved({3, 4}, options({"O0", {}}, nullptr), &norms));
  EXPECT_THAT(norms.norms, ::testing::ElementsAre(5, 5));
}

TEST_P(ClipAtLevel, AMP_23_AnOverflowIsSkippedNotClipped) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  Model model(network, loss, optimizer,
              {.amp_level = GetParam().level,
               .loss_scale_manager = FixedLossScaleManager({.loss_scale = 1024}),
               .amp_dtype = GetParam().dtype,
               .clip_global_norm = 1.0,
               .clip_value = 1.0});
  for (float gradient : {kInfinity, kNan}) {
    MPC_ASSERT_OK(model.Train(1, Batches({{Tensor::Full({1}, gradient), Tensor::Full({1}, 0.0)}})));
  }
  EXPECT_EQ(network.weight.Value()->Item<float>(), 0.0f);
  EXPECT_EQ(model.skipped_steps(), 2);
}

INSTANTIATE_TEST_SUITE_P(Levels, ClipAtLevel, ::testing::ValuesIn(AllLevels()), LevelName);

TEST(Clip, RejectsBadLimits) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams());
  const auto error = [&](ModelOptions options) {
    return std::string(Model(network, loss, optimizer, std::move(options)).status().message());
  };
  EXPECT_THAT(error({.clip_global_norm = 0}), HasSubstr("clip_global_norm must be a finite number > 0, got 0"));
  EXPECT_THAT(error({.clip_value = -1}), HasSubstr("clip_value must be a finite number > 0, got -1"));
  EXPECT_THAT(error({.clip_global_norm = 1e-50}),
              HasSubstr("clip_global_norm must be a finite number > 0, got 1e-50, which f32 does not hold"));
  EXPECT_THAT(error({.clip_value = 1e39}),
              HasSubstr("clip_value must be a finite number > 0, got 1e+39, which f32 does not hold"));
  EXPECT_THAT(std::string(ops::ClipByGlobalNorm({Tensor::From({3.0f}, {1})}, 1e-50).norm.status().message()),
              HasSubstr("ClipByGlobalNorm: max_norm must be a finite number > 0, got 1e-50, which f32 does not hold"));
  ScalerStep step{amp::GradScaler()};
  EXPECT_THAT(std::string(Model(step, {.clip_value = 1}).status().message()), HasSubstr("clip in this step with"));
}

TEST(Clip, WorksOnConcreteTensors) {
  const std::vector<Tensor> gradients = {Tensor::From({3.0f, 4.0f}, {2}), Tensor::From({12.0f}, {1})};
  EXPECT_EQ(ops::GlobalNorm(gradients).Item<float>(), 13.0f);
  const ops::ClippedGradients clipped = ops::ClipByGlobalNorm(gradients, 100);
  EXPECT_EQ(clipped.gradients[0].ToFloats(), gradients[0].ToFloats());
  EXPECT_EQ(clipped.norm.Item<float>(), 13.0f);
  EXPECT_EQ(clipped.norm.dtype(), DType::kF32);
  const std::vector<Tensor> huge = {Tensor::From({3e19f, 4e19f}, {2})};
  EXPECT_EQ(ops::GlobalNorm(huge).Item<float>(), 5e19f);
  EXPECT_THAT(ops::ClipByGlobalNorm(huge, 10).gradients[0].ToFloats(),
              ::testing::ElementsAre(::testing::FloatEq(6), ::testing::FloatEq(8)));
  EXPECT_EQ(ops::ClipByValue(gradients, 3.5)[0].ToFloats(), (std::vector<float>{3, 3.5}));
}

}  // namespace
}  // namespace mpc::testing
