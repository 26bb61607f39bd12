// amp::AutoCast scopes, cast_model_outputs, and the two forms of a Model's precision: what the trace holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpc/mpc.h"

namespace mpc {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const TensorSpec kInput{DType::kF32, {2, 4}};

/// A Dense, and a relu in a scope of the test's choice.
class Scoped : public nn::Cell {
 public:
  MPC_CELL(Scoped, fc)
  Tensor Construct(Tensor x) {
    amp::AutoCast guard(options);
    x = relu(fc(x));
    if (inner.has_value()) {
      amp::AutoCast nested(*inner);
      x = sigmoid(x);
    }
    return tanh(x);
  }
  amp::AutoCastOptions options;
  std::optional<amp::AutoCastOptions> inner;

 private:
  nn::Dense fc{4, 3};
};

std::string Traced(Scoped& network) {
  const Model model(network);
  absl::StatusOr<compiler::Module> module = model.TracePredict({kInput});
  return module.ok() ? module->Print() : std::string(module.status().message());
}

TEST(AutoCast, GivesItsLevelAndTypeToWhatIsTracedInside) {
  Scoped network;
  network.options = {.level = "O2", .dtype = "bf16"};
  const std::string text = Traced(network);
  EXPECT_THAT(text, ContainsRegex("mpc.matmul[^\n]*level = \"O2\", low = bf16"));
  EXPECT_THAT(text, ContainsRegex("mpc.tanh[^\n]*level = \"O2\", low = bf16"));
}

TEST(AutoCast, TheInnermostScopeWins) {
  Scoped network;
  network.inner = amp::AutoCastOptions{.level = "O3"};
  const std::string text = Traced(network);
  EXPECT_THAT(text, ContainsRegex("mpc.relu[^\n]*level = \"O1\", low = f16"));
  EXPECT_THAT(text, ContainsRegex("mpc.sigmoid[^\n]*level = \"O3\", low = f16"));
  EXPECT_THAT(text, ContainsRegex("mpc.tanh[^\n]*level = \"O1\", low = f16"));
}

TEST(AutoCast, DisabledIsO0Inside) {
  Scoped network;
  network.options.enabled = false;
  const std::string text = Traced(network);
  EXPECT_THAT(text, ContainsRegex("mpc.matmul[^\n]*level = \"O0\""));
  EXPECT_THAT(text, Not(HasSubstr("low =")));
}

TEST(AutoCast, ListsPinOperations) {
  Scoped network;
  network.options = {.allow_add = {"tanh"}, .deny_add = {"relu"}};
  const std::string text = Traced(network);
  EXPECT_THAT(text, ContainsRegex("mpc.tanh[^\n]*pin = f16"));
  EXPECT_THAT(text, ContainsRegex("mpc.relu[^\n]*pin = f32"));
  EXPECT_THAT(text, Not(ContainsRegex("mpc.matmul[^\n]*pin")));
}

TEST(AutoCast, ToFloatOfACellBeatsADenyList) {
  Scoped network;
  network.ToFloat(DType::kF16);
  network.options.deny_add = {"relu"};
  EXPECT_THAT(Traced(network), ContainsRegex("mpc.relu[^\n]*pin = f16"));
}

TEST(AutoCast, BadOptionsAreAnErrorOfTheTrace) {
  Scoped network;
  network.options.level = "O4";
  EXPECT_THAT(Traced(network), AllOf(HasSubstr("scoped: amp::AutoCast"), HasSubstr("unknown level 'O4'")));
}

TEST(AutoCast, OutsideTracingIsAnErrorByName) {
  nn::Dense layer(4, 3);
  const Tensor x = Tensor::Zeros({2, 4});
  {
    amp::AutoCast guard;
    for (const Tensor& result : {layer(x), relu(x)}) {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(result.status().message()), AllOf(HasSubstr("amp::AutoCast"), HasSubstr("Construct")));
    }
  }
  EXPECT_TRUE(relu(x).status().ok()) << "the scope has ended";
}

/// A Dense whose scope is optional.
class MaybeScoped : public nn::Cell {
 public:
  MPC_CELL(MaybeScoped, fc)
  Tensor Construct(const Tensor& x) {
    if (!scope.has_value()) return tanh(fc(x));
    amp::AutoCast guard(*scope);
    return tanh(fc(x));
  }
  std::optional<amp::AutoCastOptions> scope;

 private:
  nn::Dense fc{4, 3};
};

std::vector<float> Predicted(MaybeScoped& network, const std::string& level) {
  Model model(network, {.amp_level = level});
  const absl::StatusOr<Tensor> output = model.Predict(Tensor::Full({2, 4}, 0.1F));
  EXPECT_TRUE(output.ok()) << output.status();
  return output.ok() ? output->ToFloats() : std::vector<float>();
}

TEST(AutoCast, ComputesWhatTheLevelOfItsModelWould) {
  MaybeScoped network;
  const std::vector<float> full = Predicted(network, "O0");
  for (const char* level : {"O1", "O2", "O3"}) {
    const std::vector<float> low = Predicted(network, level);
    EXPECT_NE(low, full);
    MaybeScoped scoped = network;
    scoped.scope = amp::AutoCastOptions{.level = level};
    EXPECT_EQ(Predicted(scoped, "O0"), low) << level;
    scoped.scope->enabled = false;
    EXPECT_EQ(Predicted(scoped, level), full) << level;
  }
}

/// A training step of the user's own with Paddle's guard around the forward pass.
class GuardedStep : public nn::TrainOneStepCell {
 public:
  MPC_CELL(GuardedStep)
  using TrainOneStepCell::TrainOneStepCell;
  Tensor Construct(const Tensor& x, const Tensor& label) {
    ops::ValueAndGradResult result;
    {
      amp::AutoCast guard({.level = "O1"});
      result = ops::ValueAndGrad(network, weights, std::vector<Tensor>{x, label}, Tensor());
    }
    return ops::Depend(result.value, optimizer(result.gradients));
  }
};

TEST(AutoCast, AHandWrittenStepTrainsInAScope) {
  MaybeScoped network;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::WithLossCell with_loss(network, loss);
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.5});
  GuardedStep step(with_loss, optimizer);
  const Tensor x = Tensor::From<float>({1, 2, 3, 4, -1, -2, -3, -4}, {2, 4});
  const Tensor label = Tensor::From<std::int32_t>({0, 2}, {2});
  const Tensor first = step(x, label);
  ASSERT_TRUE(first.status().ok()) << first.status();
  float last = first.Item<float>();
  for (int i = 0; i < 20; ++i) last = step(x, label).Item<float>();
  EXPECT_LT(last, 0.5F * first.Item<float>());
}

/// One Dense.
class Classifier : public nn::Cell {
 public:
  MPC_CELL(Classifier, fc)
  Tensor Construct(const Tensor& x) { return fc(x); }

 private:
  nn::Dense fc{4, 3};
};

class OutputType : public ::testing::TestWithParam<std::string> {};

TEST_P(OutputType, OfPredictIsCastModelOutputsAtEveryLevel) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Classifier network;
    Model model(network, {.amp = {.level = GetParam(), .cast_model_outputs = dtype, .verbosity = 0}});
    const absl::StatusOr<Tensor> output = model.Predict(Tensor::Zeros({2, 4}));
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_EQ(output->dtype(), dtype);
  }
}

TEST_P(OutputType, RoundsWhatTheLossReads) {
  Classifier network;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {});
  const Model model(network, loss, optimizer,
                    {.amp = {.level = GetParam(), .cast_model_outputs = "f16", .verbosity = 0}});
  absl::StatusOr<compiler::Module> module = model.TraceTrainStep({kInput, {DType::kI32, {2}}});
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(module->Print(), ContainsRegex("mpc.cast [^\n]*user[^\n]*f16>\n[^\n]*mpc.softmax_cross_entropy"));
}

INSTANTIATE_TEST_SUITE_P(Levels, OutputType, ::testing::Values("O0", "O1", "O2", "O3", "auto"),
                         [](const auto& info) { return info.param; });

TEST(Context, GraphModeIsTheOnlyMode) {
  EXPECT_THAT(std::string(SetContext({.mode = "pynative"}).message()),
              AllOf(HasSubstr("'pynative'"), HasSubstr("\"graph\" is the only mode")));
  EXPECT_TRUE(SetContext({}).ok());
}

std::string ConstructionError(const ModelOptions& options) {
  Classifier network;
  return std::string(Model(network, options).status().message());
}

TEST(ModelPrecision, ShortFormAndAmpMaySayTheSame) {
  EXPECT_EQ(ConstructionError({.amp_level = "O2",
                               .keep_batchnorm_fp32 = true,
                               .amp_dtype = DType::kBF16,
                               .amp = {.level = "O2", .dtype = "bf16", .keep_batchnorm_fp32 = "True", .verbosity = 0}}),
            "");
}

TEST(ModelPrecision, ShortFormAndAmpMustNotContradict) {
  EXPECT_THAT(ConstructionError({.amp_level = "O2", .amp = {.level = "O3"}}),
              AllOf(HasSubstr("amp_level = O2"), HasSubstr("amp.level = O3"), HasSubstr("contradict")));
  EXPECT_THAT(ConstructionError({.amp_level = "O2", .keep_batchnorm_fp32 = true, .amp = {.keep_batchnorm_fp32 = "0"}}),
              AllOf(HasSubstr("keep_batchnorm_fp32 = true"), HasSubstr("amp.keep_batchnorm_fp32 = 0")));
  EXPECT_THAT(ConstructionError({.amp_level = "O2", .amp_dtype = DType::kF16, .amp = {.dtype = "bf16"}}),
              AllOf(HasSubstr("amp_dtype = f16"), HasSubstr("amp.dtype = bf16")));
  EXPECT_THAT(ConstructionError({.amp_level = "O2", .loss_scale_manager = nullptr, .amp = {.loss_scale = "dynamic"}}),
              AllOf(HasSubstr("loss_scale_manager"), HasSubstr("amp.loss_scale = dynamic")));
}

TEST(ModelPrecision, LimitsAreThoseOfADynamicManagerToo) {
  Classifier network;
  const DynamicLossScaleManager dynamic({.init_loss_scale = 0x1p20});
  const Model model(network, {.loss_scale_manager = dynamic, .amp = {.min_loss_scale = 64, .max_loss_scale = 4096}});
  EXPECT_TRUE(model.status().ok()) << model.status();
  EXPECT_EQ(model.loss_scale_config().init, 4096);
  EXPECT_EQ(model.loss_scale_config().minimum, 64);
  EXPECT_EQ(model.loss_scale_config().maximum, 4096);
  EXPECT_THAT(ConstructionError({.loss_scale_manager = FixedLossScaleManager(), .amp = {.max_loss_scale = 4096}}),
              HasSubstr("amp: max_loss_scale = 4096 with loss_scale_manager = static: only a dynamic loss scale"));
  EXPECT_THAT(ConstructionError({.loss_scale_manager = nullptr, .amp = {.min_loss_scale = 4}}),
              HasSubstr("amp: min_loss_scale = 4 with loss_scale_manager = none: only a dynamic loss scale"));
  EXPECT_THAT(ConstructionError({.amp = {.level = "O2", .loss_scale = 128.0, .min_loss_scale = 256}}),
              HasSubstr("amp: min_loss_scale = 256 with loss_scale = 128: only a dynamic loss scale has limits"));
  EXPECT_THAT(ConstructionError({.amp = {.level = "O2", .loss_scale = "none", .max_loss_scale = 256}}),
              HasSubstr("amp: max_loss_scale = 256 with loss_scale = none: only a dynamic loss scale has limits"));
}

TEST(ModelPrecision, AmpAloneSetsLevelAndScaler) {
  Classifier network;
  const Model model(network, {.amp = {.level = "O2", .loss_scale = 64, .verbosity = 0}});
  EXPECT_EQ(model.precision().level, "O2");
  EXPECT_EQ(model.loss_scale_config().init, 64);
}

TEST(ModelPrecision, AMP_28_DisabledCompilesTheO0Program) {
  const auto final_ir = [](const amp::Options& options) {
    SetSeed(1);
    Classifier network;
    nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
    nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.1});
    const Model model(network, loss, optimizer, {.amp = options});
    absl::StatusOr<compiler::Module> module = model.TraceTrainStep({kInput, {DType::kI32, {2}}});
    EXPECT_TRUE(module.ok()) << module.status();
    std::vector<std::string> remarks;
    const absl::Status status =
        compiler::RunPasses(*module, model.compile_options(/*training=*/true), "final", nullptr, &remarks);
    EXPECT_TRUE(status.ok()) << status;
    return module->Print();
  };
  const std::string o0 = final_ir({.level = "O0"});
  for (const char* level : {"O1", "O2", "O3", "auto"}) {
    EXPECT_EQ(final_ir({.level = level, .cast_model_outputs = "f16", .enabled = false, .verbosity = 0}), o0) << level;
  }
}

TEST(ModelPrecision, ListsReachTheCompiler) {
  Classifier network;
  const Model model(network, {.amp = {.level = "O1", .verbosity = 0, .deny_add = {"matmul", "classifier/fc"}}});
  EXPECT_THAT(model.compile_options(/*training=*/false).deny, ::testing::ElementsAre("matmul", "classifier/fc"));
}

}  // namespace
}  // namespace mpc
