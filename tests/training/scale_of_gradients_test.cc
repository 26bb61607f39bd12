// Scaled and unscaled gradients in steps that call a scaler themselves: what divides fits what has multiplied.
#include <gmock/gmock.h>

#include <functional>

#include "tests/frontend/error_of.h"
#include "tests/training/scaler_steps.h"

namespace mpc::testing {
namespace {

using amp::AmpScaler;
using amp::GradScaler;
using ::testing::HasSubstr;

/// Does with a scaler, and with an optimizer of this loss_scale, what a test asks for.
class DividingStep : public nn::TrainingStep {
 public:
  using Body = std::function<void(DividingStep&, const Tensor&)>;
  MPC_CELL(DividingStep, network)
  DividingStep(double loss_scale, Body body)
      : body(std::move(body)), optimizer(network.TrainableParams(), {.learning_rate = 1.0, .loss_scale = loss_scale}) {}
  Tensor Construct(Tensor x) {
    const Tensor loss = ProbeLoss(network, x);
    body(*this, loss);
    return loss;
  }
  std::vector<Tensor> Gradients(const Tensor& loss) { return ops::Backward(loss, optimizer.parameters()); }

  Body body;
  Probe network{3};
  nn::SGD optimizer;
  GradScaler scaler{{.init_scale = 64}};
};

/// The error of one step, whose gradient is 4. Without an error the weights have moved by that gradient.
std::string ErrorOfStep(double loss_scale, DividingStep::Body body) {
  DividingStep step(loss_scale, std::move(body));
  const std::string error = ErrorOf(step(Tensor::Full({3}, 4.0)).status());
  EXPECT_TRUE(!error.empty() || step.network.weight.Value()->ToFloats() == std::vector<float>(3, -4.0f));
  return error;
}

/// Steps by gradients of `loss * factor`.
DividingStep::Body ScaledByHand(double factor) {
  return [factor](DividingStep& self, const Tensor& loss) { self.optimizer(self.Gradients(loss * factor)); };
}

/// Steps by gradients of a loss that a static scaler has scaled.
DividingStep::Body ScaledBy(double scale) {
  AmpScaler scaler({.init_loss_scaling = scale, .use_dynamic_loss_scaling = false});
  return
      [scaler](DividingStep& self, const Tensor& loss) mutable { self.optimizer(self.Gradients(scaler.Scale(loss))); };
}

constexpr char kNothingToDivide[] = "no scale is left for it to divide; it is the gradient of 'weight'";

// The optimizer divides by one number, so the scaler must multiply by it in every step.
TEST(ScaleOfGradients, AnOptimizersLossScaleFitsTheScalerOfItsGradients) {
  for (double loss_scale : {64.0, 1024.0}) {
    EXPECT_THAT(
        ErrorOfStep(loss_scale, [](DividingStep& self,
                                   const Tensor& loss) { self.optimizer(self.Gradients(self.scaler.Scale(loss))); }),
        HasSubstr("but the scale that it has to divide is dynamic"));
  }
  EXPECT_EQ(ErrorOfStep(1024, ScaledBy(1024)), "");
  EXPECT_THAT(ErrorOfStep(512, ScaledBy(1024)),
              HasSubstr("SGD has loss_scale = 512, but the scale that it has to divide is 1024"));
  EXPECT_THAT(ErrorOfStep(1024,
                          [](DividingStep& self, const Tensor& loss) {
                            self.scaler.Step(self.optimizer, self.Gradients(self.scaler.Scale(loss)));
                            self.scaler.Update();
                          }),
              HasSubstr(kNothingToDivide));
}

// A factor of the loss may be the user's own scale. A mean is none.
TEST(ScaleOfGradients, AnOptimizerDividesAScaleOfTheUsersOwn) {
  EXPECT_EQ(ErrorOfStep(1024, ScaledByHand(1024)), "");
  EXPECT_THAT(ErrorOfStep(1024, ScaledByHand(512)), HasSubstr(kNothingToDivide));
  EXPECT_THAT(ErrorOfStep(1024, ScaledByHand(1.0 / 3)), HasSubstr(kNothingToDivide));
}

// What is clipped has been scaled by nothing, as what is not clipped.
TEST(ScaleOfGradients, UnscalingClippedGradientsThatNothingHasScaledIsAnErrorByName) {
  EXPECT_THAT(ErrorOfStep(1,
                          [](DividingStep& self, const Tensor& loss) {
                            self.scaler.Scale(loss * 2.0);
                            self.scaler.Step(self.optimizer, ops::ClipByValue(self.Gradients(loss), 1.5));
                            self.scaler.Update();
                          }),
              HasSubstr("which has not scaled its loss; it is the gradient of 'weight'"));
}

/// Paddle's program without Scale.
class UnscaledMinimize : public nn::TrainingStep {
 public:
  MPC_CELL(UnscaledMinimize, network)
  Tensor Construct(Tensor x) {
    const Tensor loss = ProbeLoss(network, x);
    ops::Backward(loss, optimizer.parameters());
    return ops::Depend(loss, scaler.Minimize(optimizer, loss));
  }
  Probe network;
  nn::SGD optimizer{network.TrainableParams()};
  AmpScaler scaler;
};

TEST(ScaleOfGradients, MinimizingWithoutScaleIsAnErrorByName) {
  UnscaledMinimize step;
  EXPECT_THAT(ErrorOf(step(Tensor::Full({1}, 1.0)).status()),
              HasSubstr("AmpScaler: no loss has been scaled since the last Update: differentiate what Scale returns"));
}

/// What a Model says of an optimizer that divides by 1024.
std::string ModelError(ModelOptions options) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.loss_scale = 1024});
  Model model(network, loss, optimizer, std::move(options));
  const data::Row row = {Tensor::Full({1}, 4.0), Tensor::Full({1}, 0.0)};
  return std::string(model.Train(1, Batches({row, row})).message());
}

// Clipping and accumulation give a gradient no scale that an optimizer could divide, and take none.
TEST(ScaleOfGradients, ALossScaleThatNothingScalesIsFoundBehindClippingAndAccumulation) {
  const FixedLossScaleManager divided({.loss_scale = 1024, .drop_overflow_update = false});
  const FixedLossScaleManager dropped({.loss_scale = 1024});
  for (const char* level : {"O0", "O2"}) {
    EXPECT_THAT(ModelError({.amp_level = level, .clip_value = 1.0}), HasSubstr(kNothingToDivide)) << level;
    EXPECT_THAT(ModelError({.amp_level = level, .clip_global_norm = 1.0}), HasSubstr(kNothingToDivide)) << level;
    EXPECT_THAT(ModelError({.amp_level = level, .accumulation_steps = 2}), HasSubstr(kNothingToDivide)) << level;
    EXPECT_THAT(ModelError({.amp_level = level, .loss_scale_manager = dropped, .clip_value = 1.0}),
                HasSubstr(kNothingToDivide))
        << level;
  }
}

// The compiler would refuse it, too: "a gradient is clipped while it is scaled".
TEST(ScaleOfGradients, ALossScaleThatTheOptimizerDividesByIsNotClippedOrMeasured) {
  const FixedLossScaleManager divided({.loss_scale = 1024, .drop_overflow_update = false});
  const auto message = [](const std::string& option, const std::string& name, const std::string& verb) {
    return "Model: " + option +
           " and a loss_scale_manager with drop_overflow_update = false contradict each other: " + "gradients are " +
           verb + " without the loss scale, and the optimizer divides by it afterwards; leave out " + name +
           ", or take drop_overflow_update = true and an optimizer without loss_scale";
  };
  const auto status = [&](ModelOptions options) {
    Probe network;
    SumLoss loss;
    nn::SGD optimizer(network.TrainableParams(), {.loss_scale = 1024});
    options.loss_scale_manager = divided;
    return std::string(Model(network, loss, optimizer, std::move(options)).status().message());
  };
  for (const char* level : {"O0", "O2"}) {
    EXPECT_EQ(status({.amp_level = level, .clip_global_norm = 0.5}),
              message("clip_global_norm = 0.5", "clip_global_norm", "clipped"));
    EXPECT_EQ(status({.amp_level = level, .clip_value = 1.0}), message("clip_value = 1", "clip_value", "clipped"));
    EXPECT_EQ(status({.amp_level = level, .record_gradient_norm = true}),
              message("record_gradient_norm", "record_gradient_norm", "measured"));
    EXPECT_EQ(status({.amp_level = level}), "");
  }
}

// What multiplies by 1 leaves nothing to divide. MindSpore trains so.
TEST(ScaleOfGradients, AScaleOfOneNeedsNoOptimizerThatDivides) {
  const FixedLossScaleManager one({.loss_scale = 1, .drop_overflow_update = false});
  const auto train = [&](nn::Optimizer& optimizer, Probe& network) {
    SumLoss loss;
    Model model(network, loss, optimizer, {.amp_level = "O2", .loss_scale_manager = one});
    const data::Row row = {Tensor::Full({1}, 4.0), Tensor::Full({1}, 0.0)};
    return std::string(model.Train(1, Batches({row})).message());
  };
  Probe network, decayed, divided;
  nn::SGD sgd(network.TrainableParams(), {.learning_rate = 0.125});
  EXPECT_EQ(train(sgd, network), "");
  EXPECT_EQ(network.weight.Value()->ToFloats()[0], -0.5f);
  nn::AdamWeightDecay adam(decayed.TrainableParams());
  EXPECT_EQ(train(adam, decayed), "");
  nn::SGD by_two(divided.TrainableParams(), {.loss_scale = 2});
  EXPECT_THAT(train(by_two, divided), HasSubstr(kNothingToDivide));
}

// The compiler would refuse it, too: tests/lit/passes/verify-loss-scale-errors.mlir.
TEST(ScaleOfGradients, ALossScaleThatTheOptimizerDividesByIsNotAccumulated) {
  const FixedLossScaleManager divided({.loss_scale = 1024, .drop_overflow_update = false});
  const auto message = [](const std::string& of_step) {
    return "Model: accumulation_steps = 2 and a loss_scale_manager" + of_step +
           " with drop_overflow_update = false contradict each other: gradients are accumulated without the loss "
           "scale, and the optimizer would divide by it; take accumulation_steps = 1, or drop_overflow_update = true "
           "and an optimizer without loss_scale";
  };
  for (const char* level : {"O0", "O2"}) {
    EXPECT_EQ(ModelError({.amp_level = level, .loss_scale_manager = divided, .accumulation_steps = 2}), message(""));
  }
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.loss_scale = 1024});
  nn::WithLossCell with_loss(network, loss);
  nn::TrainOneStepWithLossScaleCell scaled(with_loss, optimizer, divided);
  EXPECT_EQ(Model(scaled, {.accumulation_steps = 2}).status().message(), message(" of TrainOneStepWithLossScaleCell"));
  EXPECT_TRUE(Model(scaled).status().ok());
  nn::TrainOneStepCell plain(with_loss, optimizer);
  EXPECT_EQ(Model(plain, {.loss_scale_manager = divided, .accumulation_steps = 2}).status().message(), message(""));
  EXPECT_TRUE(Model(with_loss, {.loss_scale_manager = divided, .accumulation_steps = 2}).status().ok())
      << "it trains nothing";
}

}  // namespace
}  // namespace mpc::testing
