// AmpScaler and GradScaler: the state machine, their methods, their state.
#include <gmock/gmock.h>

#include "tests/frontend/error_of.h"
#include "tests/training/scaler_steps.h"

namespace mpc::testing {
namespace {

using amp::AmpScaler;
using amp::GradScaler;
using ::testing::HasSubstr;

// ---- The state machine, through each front --------------------------------------------------------------------------

template <typename Step>
void ExpectStateWalk(Step& step) {
  const std::vector<float> gradients = {1, 1, kInfinity};
  const std::vector<double> scales = {4, 8, 2};
  const std::vector<std::int64_t> counters = {1, 0, 0};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    MPC_ASSERT_OK(step.Run(gradients[i]));
    EXPECT_EQ(step.scaler.scaler().scale(), scales[i]) << i;
    EXPECT_EQ(step.scaler.scaler().good_steps(), counters[i]) << i;
  }
  EXPECT_EQ(step.Weight(), -2.0f);
}

TEST(GradientScaler, AMP_11_StateWalk) {
  ScalerStep paddle{AmpScaler({.init_loss_scaling = 4, .incr_ratio = 2, .decr_ratio = 0.25, .incr_every_n_steps = 2})};
  ExpectStateWalk(paddle);
  ScalerStep torch{GradScaler({.init_scale = 4, .growth_factor = 2, .backoff_factor = 0.25, .growth_interval = 2})};
  ExpectStateWalk(torch);
}

template <typename Step>
void ExpectReplay(Step& step) {
  const std::vector<float> gradients = {20, kInfinity, 10, kInfinity};
  const std::vector<double> scales = {4, 2, 2, 1};
  const std::vector<std::int64_t> counters = {1, 0, 1, 0};
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    MPC_ASSERT_OK(step.Run(gradients[i]));
    EXPECT_EQ(step.scaler.scaler().scale(), scales[i]) << i;
    EXPECT_EQ(step.scaler.scaler().good_steps(), counters[i]) << i;
  }
  EXPECT_EQ(step.Weight(), -30.0f);
  EXPECT_EQ(step.scaler.scaler().skipped_steps(), 2);
}

TEST(GradientScaler, AMP_12_Replay) {
  ScalerStep paddle{AmpScaler({.init_loss_scaling = 4, .incr_every_n_steps = 2})};
  ExpectReplay(paddle);
  ScalerStep torch{GradScaler({.init_scale = 4, .growth_interval = 2})};
  ExpectReplay(torch);
}

TEST(GradientScaler, AMP_15_PaddleCountsConsecutiveOverflows) {
  ScalerStep step{AmpScaler({.init_loss_scaling = 64, .decr_every_n_nan_or_inf = 2})};
  for (float gradient : {kInfinity, 1.0f, kInfinity}) MPC_ASSERT_OK(step.Run(gradient));
  EXPECT_EQ(step.scaler.scaler().scale(), 64);
  MPC_ASSERT_OK(step.Run(kNan));
  EXPECT_EQ(step.scaler.scaler().scale(), 32);
}

TEST(GradientScaler, AMP_19_StaticPaddleSkips) {
  ScalerStep step{AmpScaler({.init_loss_scaling = 128, .use_dynamic_loss_scaling = false})};
  MPC_ASSERT_OK(step.Run(2.0f));
  MPC_ASSERT_OK(step.Run(kInfinity));
  EXPECT_EQ(step.Weight(), -2.0f);
  EXPECT_EQ(*step.optimizer.step(), 1);
  EXPECT_EQ(step.scaler.scaler().scale(), 128);
  EXPECT_EQ(step.scaler.scaler().skipped_steps(), 1);
}

TEST(GradientScaler, AMP_21_OneScalerSkipsTheOptimizerThatOverflowsOnly) {
  TwoOptimizerScalerStep<GradScaler> step{GradScaler({.init_scale = 8})};
  MPC_ASSERT_OK(step.Run(kInfinity, 2.0f));
  EXPECT_EQ(step.first.weight.Value()->Item<float>(), 0.0f);
  EXPECT_EQ(step.second.weight.Value()->Item<float>(), -2.0f);
  EXPECT_EQ(step.scaler.GetScale(), 4) << "one backoff";
  MPC_ASSERT_OK(step.Run(1.0f, kNan));
  EXPECT_EQ(step.first.weight.Value()->Item<float>(), -1.0f);
  EXPECT_EQ(step.second.weight.Value()->Item<float>(), -2.0f);
  EXPECT_EQ(step.scaler.GetScale(), 2);
  EXPECT_EQ(*step.optimizer_x.step(), 1);
  EXPECT_EQ(*step.optimizer_y.step(), 1);
}

TEST(GradientScaler, AMP_27_OverflowsMultiplyTheScaleByTheBackoff) {
  ScalerStep step{AmpScaler({.init_loss_scaling = 1024, .decr_ratio = 0.25})};
  MPC_ASSERT_OK(step.Run(1.0f));
  for (int i = 0; i < 4; ++i) MPC_ASSERT_OK(step.Run(kInfinity));
  const amp::ScalerState state = step.scaler.StateDict();
  EXPECT_EQ(state.at("scale"), 1024 * 0.25 * 0.25 * 0.25 * 0.25);
  EXPECT_EQ(state.at("incr_count"), 0);
}

TEST(GradientScaler, AMP_20_PowersOfTwoTrainAsWithoutAScaler) {
  ScalerStep plain{AmpScaler({.enable = false})};
  for (int k = 0; k <= 20; k += 5) {
    ScalerStep scaled{GradScaler({.init_scale = std::ldexp(1.0, k)})};
    ScalerStep control{AmpScaler({.enable = false})};
    for (float gradient : {0.7f, -1.3f, 0.1f}) {
      MPC_ASSERT_OK(scaled.Run(gradient));
      MPC_ASSERT_OK(control.Run(gradient));
    }
    EXPECT_EQ(scaled.Weight(), control.Weight()) << "2^" << k;
  }
}

// ---- What a skipped step leaves -------------------------------------------------------------------------------------

/// Convolution, batch norm, dropout, momentum and a schedule under a scaler.
class EveryStateStep : public nn::TrainingStep {
 public:
  MPC_CELL(EveryStateStep, network)
  explicit EveryStateStep(bool dynamic = true)
      : scaler({.init_loss_scaling = 256, .use_dynamic_loss_scaling = dynamic}) {}
  Tensor Construct(Tensor image, Tensor label) {
    const Tensor loss = softmax_cross_entropy(network(image), label);
    const Tensor scaled = scaler.Scale(loss);
    return ops::Depend(loss, scaler.Minimize(optimizer, ops::Backward(scaled, optimizer.parameters())));
  }
  std::vector<nn::Optimizer*> optimizers() const override { return {const_cast<nn::Momentum*>(&optimizer)}; }

  ConvNorm network;
  nn::Momentum optimizer{network.TrainableParams(),
                         {.learning_rate = nn::PolynomialDecay({.learning_rate = 0.1, .decay_steps = 10})}};
  AmpScaler scaler;
};

class ScalerAtLevel : public ::testing::TestWithParam<Level> {};

// AMP-18 and AMP-36 for a scaler of the step's own.
TEST_P(ScalerAtLevel, AMP_36_EverythingButTheScalerHoldsStillOnASkippedStep) {
  SetSeed(7);
  EveryStateStep step;
  Model model(step, {.amp_level = GetParam().level, .loss_scale_manager = nullptr, .amp_dtype = GetParam().dtype});
  const Shape image = {2, 6, 6};
  MPC_ASSERT_OK(model.Train(1, GoodBatches(image, 2)));
  const Snapshot before = StateOf(model);
  EXPECT_EQ(before.count("norm.moving_mean"), 1u);
  EXPECT_EQ(StateItem(model, "rng.step"), 2);
  MPC_ASSERT_OK(model.Train(1, Batches({WithBadValue(MakeBatch(image, 8, 3), kNan)})));
  for (const std::string& name : Differences(before, StateOf(model))) EXPECT_EQ(name.rfind("scaler.", 0), 0u) << name;
  EXPECT_EQ(model.skipped_steps(), 1);
  EXPECT_EQ(model.loss_scale(), 128);
  MPC_ASSERT_OK(model.Train(1, GoodBatches(image, 1)));
  EXPECT_EQ(StateItem(model, "rng.step"), 3);
  EXPECT_EQ(StateItem(model, "optimizer.step"), 3);
}

// AMP-17 for a scaler of the step's own; static, so that later gradients round as without the overflow.
TEST_P(ScalerAtLevel, AMP_17_OverflowIsAsIfTheBatchHadNotBeen) {
  const Shape image = {2, 6, 6};
  const auto train = [&](bool with_bad) {
    SetSeed(7);
    EveryStateStep step(/*dynamic=*/false);
    Model model(step, {.amp_level = GetParam().level, .loss_scale_manager = nullptr, .amp_dtype = GetParam().dtype});
    std::vector<data::Row> batches = {MakeBatch(image, 8, 0), MakeBatch(image, 8, 1), MakeBatch(image, 8, 2)};
    if (with_bad) batches.insert(batches.begin() + 1, WithBadValue(MakeBatch(image, 8, 9), kInfinity));
    MPC_EXPECT_OK(model.Train(1, Batches(batches)));
    EXPECT_EQ(model.skipped_steps(), with_bad ? 1 : 0);
    return WithoutScaler(StateOf(model));
  };
  EXPECT_EQ(Differences(train(false), train(true)), std::vector<std::string>{});
}

INSTANTIATE_TEST_SUITE_P(Levels, ScalerAtLevel, ::testing::ValuesIn(AllLevels()), LevelName);

// ---- Minimize, Unscale, misuse --------------------------------------------------------------------------------------

/// Paddle's program: Backward, then Minimize by the scaled loss.
class MinimizeStep : public nn::TrainingStep {
 public:
  MPC_CELL(MinimizeStep, network)
  explicit MinimizeStep(bool backward_first) : backward_first(backward_first) {}
  Tensor Construct(Tensor x) {
    const Tensor loss = ProbeLoss(network, x);
    const Tensor scaled = scaler.Scale(loss);
    if (backward_first) ops::Backward(scaled, optimizer.parameters());
    return ops::Depend(loss, scaler.Minimize(optimizer, scaled));
  }
  bool backward_first;
  Probe network;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0}};
  AmpScaler scaler{{.init_loss_scaling = 1024, .incr_every_n_steps = 2}};
};

TEST(AmpScaler, MinimizeUnscalesUpdatesAndMovesTheScale) {
  for (bool backward_first : {true, false}) {
    MinimizeStep step(backward_first);
    for (float gradient : {2.0f, kInfinity, 1.0f, 1.0f}) {
      MPC_ASSERT_OK(step(Tensor::Full({1}, gradient)).status());
    }
    EXPECT_EQ(step.network.weight.Value()->Item<float>(), -4.0f);
    EXPECT_EQ(step.scaler.scaler().scale(), 1024);
    EXPECT_EQ(step.scaler.scaler().skipped_steps(), 1);
  }
}

/// Does with a scaler what a test asks for.
class FreeStep : public nn::TrainingStep {
 public:
  MPC_CELL(FreeStep, network)
  explicit FreeStep(std::function<void(FreeStep&, const Tensor&)> body) : body(std::move(body)) {}
  Tensor Construct(Tensor x) {
    const Tensor loss = ProbeLoss(network, x);
    body(*this, loss);
    return loss;
  }
  std::vector<Tensor> Gradients(const Tensor& loss) {
    return ops::Backward(scaler.Scale(loss), optimizer.parameters());
  }
  std::string Error() { return ErrorOf((*this)(Tensor::Full({3}, 4.0)).status()); }

  std::function<void(FreeStep&, const Tensor&)> body;
  Probe network{3};
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0}};
  GradScaler scaler{{.init_scale = 64}};
};

// AMP-23: what is clipped is not scaled.
TEST(GradScaler, AMP_23_UnscaleThenClipEqualsTheF32Control) {
  FreeStep scaled([](FreeStep& step, const Tensor& loss) {
    std::vector<Tensor> gradients = step.scaler.Unscale(step.optimizer, step.Gradients(loss));
    gradients = ops::ClipByGlobalNorm(gradients, 1.5).gradients;
    step.scaler.Step(step.optimizer, gradients);
    step.scaler.Update();
  });
  FreeStep control([](FreeStep& step, const Tensor& loss) {
    const std::vector<Tensor> gradients = ops::Backward(loss, step.optimizer.parameters());
    step.optimizer(ops::ClipByGlobalNorm(gradients, 1.5).gradients);
  });
  EXPECT_EQ(scaled.Error(), "");
  EXPECT_EQ(control.Error(), "");
  EXPECT_EQ(scaled.network.weight.Value()->ToFloats(), control.network.weight.Value()->ToFloats());
  EXPECT_NEAR(control.network.weight.Value()->ToFloats()[0], -1.5 / std::sqrt(3.0), 1e-6);
}

TEST(GradScaler, AMP_23_ClippingScaledGradientsIsAnError) {
  FreeStep step([](FreeStep& self, const Tensor& loss) {
    const std::vector<Tensor> gradients = ops::ClipByGlobalNorm(self.Gradients(loss), 1.5).gradients;
    self.scaler.Step(self.optimizer, gradients);
    self.scaler.Update();
  });
  EXPECT_THAT(step.Error(), HasSubstr("while it is scaled by 'scaler.scale'"));
  FreeStep by_value([](FreeStep& self, const Tensor& loss) {
    self.scaler.Step(self.optimizer, ops::ClipByValue(self.Gradients(loss), 1.5));
    self.scaler.Update();
  });
  EXPECT_THAT(by_value.Error(),
              HasSubstr("a gradient is clipped while it is scaled by 'scaler.scale'; it is the gradient of 'weight'"));
}

TEST(GradScaler, AMP_23_HandWrittenDivisionIsNoError) {
  FreeStep step([](FreeStep& self, const Tensor& loss) {
    std::vector<Tensor> gradients = ops::Backward(loss, self.optimizer.parameters(), ops::Fill(DType::kF32, {}, 64.0));
    gradients = ops::Map([](const Tensor& gradient) { return gradient / 64.0; }, gradients);
    self.optimizer(ops::ClipByGlobalNorm(gradients, 100).gradients);
  });
  EXPECT_EQ(step.Error(), "");
  EXPECT_NEAR(step.network.weight.Value()->ToFloats()[0], -4.0, 1e-5);
}

TEST(GradScaler, MisuseIsAnErrorOfTheGraph) {
  EXPECT_THAT(FreeStep([](FreeStep& self, const Tensor& loss) {
                const std::vector<Tensor> gradients = self.scaler.Unscale(self.optimizer, self.Gradients(loss));
                self.scaler.Unscale(self.optimizer, gradients);
              }).Error(),
              HasSubstr("GradScaler::Unscale has already been called for this optimizer"));
  EXPECT_THAT(FreeStep([](FreeStep& self, const Tensor& loss) {
                const std::vector<Tensor> gradients = self.Gradients(loss);
                self.scaler.Step(self.optimizer, gradients);
                self.scaler.Step(self.optimizer, gradients);
              }).Error(),
              HasSubstr("GradScaler::Step has already been called for this optimizer since the last Update"));
  EXPECT_THAT(FreeStep([](FreeStep& self, const Tensor& loss) {
                self.scaler.Step(self.optimizer, self.Gradients(loss));
              }).Error(),
              HasSubstr("call Update once at the end of the step"));
  EXPECT_THAT(FreeStep([](FreeStep& self, const Tensor& loss) {
                self.Gradients(loss);
                self.scaler.Update();
              }).Error(),
              HasSubstr("GradScaler::Update without Step or Unscale before it"));
  EXPECT_THAT(FreeStep([](FreeStep& self, const Tensor& loss) { self.optimizer(self.Gradients(loss)); }).Error(),
              HasSubstr("while it is scaled by 'scaler.scale'"));
  EXPECT_THAT(FreeStep([](FreeStep& self, const Tensor& loss) {
                self.scaler.Step(self.optimizer, self.Gradients(self.scaler.Scale(loss)));
                self.scaler.Update();
              }).Error(),
              HasSubstr("a loss is scaled twice by 'scaler.scale'"));
}

TEST(GradScaler, TakesAGradientForEachParameter) {
  EXPECT_THAT(FreeStep([](FreeStep& self, const Tensor& loss) {
                std::vector<Tensor> gradients = self.Gradients(loss);
                gradients.push_back(gradients[0]);
                self.scaler.Step(self.optimizer, gradients);
                self.scaler.Update();
              }).Error(),
              HasSubstr("GradScaler: got 2 gradients for 1 parameters"));
}

// A frozen parameter of the optimizer has no gradient.
TEST(GradScaler, LeavesFrozenParametersOut) {
  const Parameter frozen(Tensor::Full({2}, 3.0), {.requires_grad = false});
  FreeStep step([&](FreeStep& self, const Tensor& loss) {
    std::vector<Tensor> gradients = ops::Backward(self.scaler.Scale(loss), {self.network.weight});
    gradients.emplace_back();
    self.scaler.Step(self.optimizer, gradients);
    self.scaler.Update();
  });
  step.optimizer = nn::SGD({step.network.weight, frozen}, {.learning_rate = 1.0});
  EXPECT_EQ(step.Error(), "");
  EXPECT_EQ(step.network.weight.Value()->ToFloats(), std::vector<float>(3, -4.0f));
  EXPECT_EQ(frozen.Value()->ToFloats(), std::vector<float>(2, 3.0f));
}

// After an update the scaler takes the optimizer's next gradients; another scaler knows nothing of the first one's.
TEST(GradScaler, StagesAreThoseOfOneScalerAndOneUpdate) {
  EXPECT_EQ(FreeStep([&](FreeStep& self, const Tensor& loss) {
              self.scaler.Unscale(self.optimizer, self.Gradients(loss));
              self.scaler.Update();
              self.scaler.Unscale(self.optimizer, self.Gradients(loss * 2.0));
              self.scaler.Update();
            }).Error(),
            "");
  GradScaler another({.init_scale = 2});
  EXPECT_EQ(FreeStep([&](FreeStep& self, const Tensor& loss) {
              const Tensor first = self.scaler.Scale(loss), second = another.Scale(loss);
              self.scaler.Unscale(self.optimizer, ops::Backward(first, self.optimizer.parameters()));
              another.Unscale(self.optimizer, ops::Backward(second, self.optimizer.parameters()));
              self.scaler.Update();
              another.Update();
            }).Error(),
            "");
}

// Gradients that are divided by a scale which nothing has multiplied them by train to nothing.
TEST(GradScaler, UnscalingWhatNoScalerHasScaledIsAnErrorByName) {
  const auto says = ::testing::AllOf(
      HasSubstr(
          "a gradient is unscaled by 'scaler.scale', which has not scaled its loss; it is the gradient of 'weight'"),
      HasSubstr("a gradient of a loss that no scaler has scaled comes from here"));
  // Another loss is scaled, so that the scaler has something to say.
  const auto scales_another = [](FreeStep& self, const Tensor& loss) { self.scaler.Scale(loss * 2.0); };
  EXPECT_THAT(FreeStep([&](FreeStep& self, const Tensor& loss) {
                scales_another(self, loss);
                self.scaler.Unscale(self.optimizer, ops::Backward(loss, self.optimizer.parameters()));
                self.scaler.Update();
              }).Error(),
              says);
  EXPECT_THAT(FreeStep([&](FreeStep& self, const Tensor& loss) {
                scales_another(self, loss);
                self.scaler.Step(self.optimizer, ops::Backward(loss, self.optimizer.parameters()));
                self.scaler.Update();
              }).Error(),
              says);
  EXPECT_THAT(FreeStep([&](FreeStep& self, const Tensor& loss) {
                scales_another(self, loss);
                self.scaler.Step(self.optimizer, loss);
                self.scaler.Update();
              }).Error(),
              says);
  // Arithmetic on a scaled loss is unknown, and no error.
  EXPECT_EQ(FreeStep([](FreeStep& self, const Tensor& loss) {
              self.scaler.Step(self.optimizer,
                               ops::Backward(self.scaler.Scale(loss) / 2.0, self.optimizer.parameters()));
              self.scaler.Update();
            }).Error(),
            "");
}

/// Paddle's program with the loss in place of the scaled one.
class PlainMinimize : public nn::TrainingStep {
 public:
  MPC_CELL(PlainMinimize, network)
  Tensor Construct(Tensor x) {
    const Tensor loss = ProbeLoss(network, x);
    ops::Backward(loss, optimizer.parameters());
    const Tensor scaled = scaler.Scale(loss);
    return ops::Depend(scaled, scaler.Minimize(optimizer, loss));
  }
  Probe network;
  nn::SGD optimizer{network.TrainableParams()};
  AmpScaler scaler;
};

TEST(AmpScaler, MinimizingALossThatItHasNotScaledIsAnErrorByName) {
  PlainMinimize step;
  EXPECT_THAT(ErrorOf(step(Tensor::Full({1}, 1.0)).status()), HasSubstr("which has not scaled its loss"));
}

/// Steps by gradients that are still scaled.
class SteppedScaled : public nn::TrainingStep {
 public:
  MPC_CELL(SteppedScaled, network)
  Tensor Construct(Tensor x) {
    const Tensor loss = reduce_sum(network(x));
    optimizer(ops::Backward(scaler.Scale(loss), optimizer.parameters()));
    return loss;
  }
  TwoLayers network;
  nn::Momentum optimizer{network.TrainableParams()};
  GradScaler scaler;
};

// A network's gradients are one error with the first names, not one each.
TEST(GradScaler, MisuseOfManyGradientsIsOneError) {
  SteppedScaled step;
  const std::string error = ErrorOf(step(Values({2, 6})).status());
  EXPECT_EQ(Count(error, "while it is scaled by 'scaler.scale'"), 1) << error;
  EXPECT_THAT(error, HasSubstr("they are the gradients of 'fc1.weight', 'fc1.bias', 'fc2.weight' and 1 more"));
}

class NoStep : public nn::Cell {
 public:
  MPC_CELL(NoStep)
  Tensor Construct(Tensor x) { return scaler.Scale(reduce_sum(x)); }
  GradScaler scaler;
};

/// Computes two gradients and uses one.
class ForgetfulStep : public nn::TrainingStep {
 public:
  MPC_CELL(ForgetfulStep, first, second)
  Tensor Construct(Tensor x) {
    const Tensor loss = ProbeLoss(first, x) + ProbeLoss(second, x);
    optimizer({ops::Backward(loss, {first.weight, second.weight})[0]});
    return loss;
  }
  Probe first;
  Probe second;
  nn::SGD optimizer{first.TrainableParams()};
};

TEST(TrainingStep, AGradientThatNoOptimizerTakesIsAnErrorByName) {
  ForgetfulStep step;
  EXPECT_THAT(ErrorOf(step(Tensor::Full({1}, 1.0)).status()),
              HasSubstr("the step computes the gradient of 'second.weight', and no optimizer updates it"));
}

TEST(TrainingStep, FixedScaleWithoutDropNeedsTheOptimizersDivision) {
  Probe network;
  SumLoss loss;
  nn::WithLossCell with_loss(network, loss);
  nn::SGD optimizer(network.TrainableParams(), {.loss_scale = 64});
  const FixedLossScaleManager manager({.loss_scale = 128, .drop_overflow_update = false});
  nn::TrainOneStepWithLossScaleCell step(with_loss, optimizer, manager);
  EXPECT_THAT(ErrorOf(step(Tensor::Full({1}, 1.0), Tensor::Full({1}, 0.0)).status()),
              HasSubstr("loss_scale = 128, drop_overflow_update = false) needs an optimizer with the same loss_scale, "
                        "but SGD has 64"));
}

TEST(GradScaler, BelongsIntoATrainingStep) {
  GradScaler scaler;
  EXPECT_THAT(ErrorOf(scaler.Scale(Tensor::Full({}, 1.0)).status()),
              HasSubstr("GradScaler::Scale belongs into the Construct of a training step"));
  EXPECT_THAT(ErrorOf(scaler.status()), HasSubstr("GradScaler::Scale"));
  NoStep inference;
  EXPECT_THAT(ErrorOf(inference(Tensor::Full({2}, 1.0)).status()),
              HasSubstr("GradScaler::Scale belongs into a training step"));
}

TEST(GradScaler, BadArgumentsReachTheStep) {
  ScalerStep step{GradScaler({.growth_factor = 0.5})};
  EXPECT_THAT(ErrorOf(step.scaler.status()), HasSubstr("GradScaler: loss scale: the growth factor must be"));
  EXPECT_THAT(ErrorOf(step.Run(1.0f)), HasSubstr("the growth factor must be finite and > 1, got 0.5"));
}

// ---- What a Model says ----------------------------------------------------------------------------------------------

TEST(GradientScaler, TheModelNamesTheGradientThatOverflows) {
  ScalerStep step{GradScaler({.init_scale = 4})};
  Model model(step);
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(model.Train(1, OneColumn({Tensor::Full({1}, kInfinity)})));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the gradient of weight is not finite; loss scale 4 -> 2; step skipped"));
  EXPECT_TRUE(model.State("scaler.scale").defined());
}

TEST(GradientScaler, TheModelNamesTheGradientOfSeveralChecks) {
  TwoOptimizerScalerStep<GradScaler> step{GradScaler({.init_scale = 4})};
  Model model(step);
  ::testing::internal::CaptureStderr();
  const data::Row row = {Tensor::Full({1}, 1.0), Tensor::Full({1}, kInfinity)};
  MPC_ASSERT_OK(model.Train(1, data::GeneratorDataset(std::vector<data::Row>{row}, {"x", "y"})));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the gradient of second.weight is not finite; loss scale 4 -> 2; step skipped"));
}

}  // namespace
}  // namespace mpc::testing
