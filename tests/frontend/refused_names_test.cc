// Names and values that cannot be meant: the answer says what was given and what is accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "mpc/mpc.h"
#include "tests/frontend/error_of.h"

namespace mpc {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using testing::ErrorOf;
using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// A Dense inside a scope of the test's choice.
class Scoped : public nn::Cell {
 public:
  MPC_CELL(Scoped, fc)
  Tensor Construct(Tensor x) {
    amp::AutoCast guard(options);
    return reduce_sum(fc(x));
  }
  amp::AutoCastOptions options;

 private:
  nn::Dense fc{4, 3};
};

std::string Traced(Scoped& network) {
  const Model model(network);
  absl::StatusOr<compiler::Module> module = model.TracePredict({{DType::kF32, {2, 4}}});
  return module.ok() ? module->Print() : ErrorOf(module.status());
}

TEST(RefusedNames, AnAutoCastListNamesOperations) {
  Scoped network;
  network.options = {.deny_add = {"matmull"}};
  EXPECT_THAT(Traced(network), AllOf(HasSubstr("'matmull' in deny_add is no operation"), HasSubstr("'matmul'")));
}

TEST(RefusedNames, AnAutoCastListKnowsFamilies) {
  Scoped network;
  network.options = {.allow_add = {"sum"}, .deny_add = {"dense"}};
  const std::string text = Traced(network);
  EXPECT_THAT(text, ContainsRegex("mpc.matmul[^\n]*pin = f32"));
  EXPECT_THAT(text, ContainsRegex("mpc.reduce_sum[^\n]*pin = f16"));
}

TEST(RefusedNames, AWordThatAnOperationDoesNotKnowIsCited) {
  nn::Dense dense(4, 3, {.activation = "rellu"});
  const Tensor y = dense(Tensor::Zeros({2, 4}));
  EXPECT_THAT(ErrorOf(y.status()), AllOf(HasSubstr("one of none, relu"), HasSubstr("got 'rellu'")));
  const Tensor loss = softmax_cross_entropy(Tensor::Zeros({2, 4}), Tensor::Zeros({2}, DType::kI32), "avg");
  EXPECT_THAT(ErrorOf(loss.status()), AllOf(HasSubstr("one of none, mean, sum"), HasSubstr("got 'avg'")));
}

TEST(RefusedNames, VerbosityIsZeroOrOne) {
  for (int verbosity : {-1, 2}) {
    const absl::Status status =
        amp::ResolveOptions({.level = "O2", .verbosity = verbosity}, amp::Front::kModel).status();
    EXPECT_THAT(ErrorOf(status), HasSubstr("is not 0 or 1"));
  }
}

TEST(RefusedNames, SkipsInARowAreCounted) {
  Scoped network;
  const Model model(network, {.max_consecutive_skips = -1});
  EXPECT_THAT(ErrorOf(model.status()), AllOf(HasSubstr("max_consecutive_skips"), HasSubstr("-1")));
}

TEST(RefusedNames, OptimizersTakeFiniteConstants) {
  nn::Dense net(4, 3);
  const std::vector<Parameter> parameters = net.TrainableParams();
  EXPECT_THAT(ErrorOf(nn::Adam(parameters, {.eps = kNan}).status()), HasSubstr("eps must be a finite number >= 0"));
  EXPECT_THAT(ErrorOf(nn::Lamb(parameters, {.eps = -1}).status()), HasSubstr("got -1"));
  EXPECT_THAT(ErrorOf(nn::Momentum(parameters, {.momentum = HUGE_VAL}).status()), HasSubstr("momentum"));
  EXPECT_THAT(ErrorOf(nn::SGD(parameters, {.dampening = kNan}).status()), HasSubstr("dampening"));
  // Updates are f32, which holds no number above 3.4e38.
  const char* const held = ", which f32 does not hold";
  EXPECT_THAT(ErrorOf(nn::Adam(parameters, {.weight_decay = 1e39}).status()),
              HasSubstr(absl::StrCat("weight_decay must be a finite number >= 0, got 1e+39", held)));
  EXPECT_THAT(ErrorOf(nn::SGD(parameters, {.weight_decay = 1e300}).status()), HasSubstr(held));
  EXPECT_THAT(ErrorOf(nn::SGD(parameters, {.momentum = 1e300}).status()),
              HasSubstr(absl::StrCat("momentum must be a finite number >= 0, got 1e+300", held)));
  EXPECT_THAT(ErrorOf(nn::SGD(parameters, {.dampening = 1e300}).status()), HasSubstr("dampening"));
  EXPECT_THAT(ErrorOf(nn::Momentum(parameters, {.momentum = 1e39}).status()), HasSubstr(held));
  EXPECT_THAT(ErrorOf(nn::AdamW(parameters, {.eps = 1e39}).status()), HasSubstr(held));
  EXPECT_THAT(ErrorOf(nn::RMSProp(parameters, {.epsilon = 1e-50}).status()), HasSubstr(held));
  EXPECT_THAT(ErrorOf(nn::Adagrad(parameters, {.accum = 1e39}).status()), HasSubstr(held));
  EXPECT_THAT(ErrorOf(nn::SGD(parameters, {.loss_scale = 1e39}).status()),
              HasSubstr(absl::StrCat("loss_scale must be a finite number > 0, got 1e+39", held)));
  EXPECT_THAT(ErrorOf(nn::SGD(std::vector<nn::ParameterGroup>{{.params = parameters, .weight_decay = 1e39}}).status()),
              HasSubstr(held));
  EXPECT_THAT(ErrorOf(nn::LARS(nn::SGD(parameters), {.epsilon = 1e-50}).status()), HasSubstr(held));
  EXPECT_TRUE(nn::SGD(parameters, {.momentum = 0.5, .weight_decay = 1e38}).status().ok());
  // 0 is what f32 holds in the place of this epsilon, and 0 / 0 is NaN.
  EXPECT_THAT(ErrorOf(nn::Adam(parameters, {.eps = 1e-50}).status()),
              HasSubstr(absl::StrCat("eps must be a finite number > 0, got 1e-50", held)));
  EXPECT_THAT(ErrorOf(nn::AdamW(parameters, {.eps = 1e-50}).status()), HasSubstr(held));
  EXPECT_THAT(ErrorOf(nn::AdamWeightDecay(parameters, {.eps = 1e-50}).status()), HasSubstr(held));
  EXPECT_THAT(ErrorOf(nn::Lamb(parameters, {.eps = 1e-50}).status()), HasSubstr(held));
  EXPECT_TRUE(nn::Adam(parameters, {.eps = 0}).status().ok());
  EXPECT_THAT(ErrorOf(nn::RMSProp(parameters, {.decay = 1 - 1e-9}).status()),
              HasSubstr("decay must be in [0, 1], and rounds to 1 in f32: 1 - decay is 1e-09"));
  EXPECT_TRUE(nn::RMSProp(parameters, {.decay = 1}).status().ok());
}

TEST(RefusedNames, LossesTakeNumbersThatF32Holds) {
  const Tensor x = Tensor::Zeros({2});
  const auto refuses = [](const char* field) { return AllOf(HasSubstr(field), HasSubstr("which f32 does not hold")); };
  EXPECT_THAT(ErrorOf(nn::SmoothL1Loss({.beta = 1e-50})(x, x)), refuses("SmoothL1Loss beta"));
  EXPECT_THAT(ErrorOf(nn::HuberLoss({.delta = 1e39})(x, x)), refuses("HuberLoss delta"));
  EXPECT_THAT(ErrorOf(nn::DiceLoss({.smooth = 1e-50})(x, x)), refuses("DiceLoss smooth"));
  const Tensor labels = Tensor::From<std::int32_t>({1}, {1});
  EXPECT_THAT(ErrorOf(nn::FocalLoss({.gamma = 1e300})(Tensor::Zeros({1, 2}), labels)), refuses("FocalLoss gamma"));
}

/// Steps with gradients of a loss that was not scaled.
class Unscaled : public nn::TrainingStep {
 public:
  MPC_CELL(Unscaled, network)
  Unscaled(nn::Dense& network, nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}
  Tensor Construct(Tensor x) {
    Tensor loss = reduce_sum(network(x));
    scaler.Step(optimizer, ops::Backward(loss, optimizer.parameters()));
    scaler.Update();
    return loss;
  }
  nn::Dense& network;
  nn::Optimizer& optimizer;
  amp::GradScaler scaler;
};

TEST(RefusedNames, AScalerStepsOnlyByWhatItHasScaled) {
  nn::Dense net(4, 3);
  nn::SGD optimizer(net.TrainableParams(), {.learning_rate = 0.1});
  Unscaled step(net, optimizer);
  EXPECT_THAT(ErrorOf(step(Tensor::Zeros({2, 4})).status()), HasSubstr("no loss has been scaled"));
}

/// Steps with a scaler of its own.
class SelfScaled : public nn::TrainingStep {
 public:
  MPC_CELL(SelfScaled, network)
  SelfScaled(nn::Dense& network, nn::Optimizer& optimizer) : network(network), optimizer(optimizer) {}
  Tensor Construct(Tensor x) {
    const Tensor scaled = scaler.Scale(reduce_sum(network(x)));
    scaler.Step(optimizer, ops::Backward(scaled, optimizer.parameters()));
    scaler.Update();
    return scaled;
  }
  nn::Dense& network;
  nn::Optimizer& optimizer;
  amp::GradScaler scaler;
};

TEST(RefusedNames, AModelAddsNoManagerToAStepThatScales) {
  nn::Dense net(4, 3);
  nn::SGD optimizer(net.TrainableParams(), {.learning_rate = 0.1});
  SelfScaled step(net, optimizer);
  const data::Dataset data = data::GeneratorDataset({{Tensor::Zeros({4})}}, {"x"}).Batch(1);
  Model both(step, {.loss_scale_manager = DynamicLossScaleManager()});
  EXPECT_THAT(ErrorOf(both.Train(1, data)), AllOf(HasSubstr("loss_scale_manager = dynamic"), HasSubstr("SelfScaled")));
  EXPECT_TRUE(Model(step).Train(1, data).ok());
}

TEST(RefusedNames, ToFloatTakesFloatingTypes) {
  nn::Dense dense(4, 3);
  dense.ToFloat(DType::kI32);
  EXPECT_THAT(ErrorOf(dense(Tensor::Zeros({2, 4})).status()),
              AllOf(HasSubstr("dense: ToFloat takes a floating type"), HasSubstr("i32")));
  nn::Dense stored(4, 3);
  stored.ToFloat(DType::kF8E4M3FN);
  EXPECT_THAT(ErrorOf(stored(Tensor::Zeros({2, 4})).status()), HasSubstr("got f8E4M3FN"));
}

TEST(RefusedNames, TrainingNothingIsRemarked) {
  nn::Dense net(4, 3);
  nn::MSELoss loss;
  nn::SGD optimizer(net.TrainableParams(), {.learning_rate = 0.1});
  for (Parameter parameter : net.TrainableParams()) parameter.set_requires_grad(false);
  Model model(net, loss, optimizer);
  const data::Dataset data = data::GeneratorDataset({{Tensor::Zeros({4}), Tensor::Zeros({3})}}, {"x", "y"}).Batch(1);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(model.Train(2, data).ok());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "remark: every parameter of the optimizer is frozen: training changes none\n");
}

TEST(RefusedNames, ADeviceIsNoCheckpoint) {
  nn::Dense net(4, 3);
  EXPECT_THAT(ErrorOf(LoadParamIntoNet(net, "/dev/zero").status()), HasSubstr("is a device, not a file"));
}

}  // namespace
}  // namespace mpc
