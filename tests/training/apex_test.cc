// amp::Initialize and amp::ScaleLoss: several models, losses and optimizers.
#include <gmock/gmock.h>

#include "tests/frontend/error_of.h"
#include "tests/training/scaler_steps.h"

namespace mpc::testing {
namespace {

using ::testing::HasSubstr;

/// One model, one loss, apex's three lines.
class ApexStep : public nn::TrainingStep {
 public:
  MPC_CELL(ApexStep, network)
  explicit ApexStep(const amp::Options& options) : initialized(amp::Initialize(network, optimizer, options)) {}
  Tensor Construct(Tensor x) {
    const Tensor loss = ProbeLoss(network, x);
    const Tensor scaled = amp::ScaleLoss(loss, optimizer);
    return ops::Depend(loss, optimizer(ops::Backward(scaled, optimizer.parameters())));
  }
  absl::Status Run(float gradient) { return (*this)(Tensor::Full({1}, gradient)).status(); }
  float Weight() const { return network.weight.Value()->ToFloats().front(); }

  Probe network;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0}};
  absl::Status initialized;
};

amp::Options Quiet(amp::Options options) {
  options.verbosity = 0;
  return options;
}

class ApexAtLevel : public ::testing::TestWithParam<const char*> {};

TEST_P(ApexAtLevel, AMP_27_OverflowsShrinkTheScaleAndTheStateSaysSo) {
  ApexStep step(Quiet({.level = GetParam(), .loss_scale = "dynamic", .max_loss_scale = 1024}));
  MPC_ASSERT_OK(step.initialized);
  MPC_ASSERT_OK(step.Run(2.0f));
  EXPECT_EQ(amp::StateDict()->at("loss_scaler0").at("loss_scale"), 1024);
  EXPECT_EQ(amp::StateDict()->at("loss_scaler0").at("unskipped"), 1);
  for (int i = 0; i < 3; ++i) MPC_ASSERT_OK(step.Run(kInfinity));
  EXPECT_EQ(amp::StateDict()->at("loss_scaler0").at("loss_scale"), 128);
  EXPECT_EQ(amp::StateDict()->at("loss_scaler0").at("unskipped"), 0);
  EXPECT_EQ(step.Weight(), -2.0f);
  EXPECT_EQ(*step.optimizer.step(), 1);
}

TEST_P(ApexAtLevel, AMP_19_AStaticScaleDoesNotSkip) {
  ApexStep step(Quiet({.level = GetParam(), .loss_scale = 128.0}));
  MPC_ASSERT_OK(step.initialized);
  MPC_ASSERT_OK(step.Run(2.0f));
  EXPECT_EQ(step.Weight(), -2.0f);
  MPC_ASSERT_OK(step.Run(kInfinity));
  EXPECT_FALSE(std::isfinite(step.Weight()));
  EXPECT_EQ(amp::StateDict()->at("loss_scaler0").at("loss_scale"), 128);
}

/// Two models, a loss of each and one of both, two optimizers.
class TwoModelStep : public nn::TrainingStep {
 public:
  MPC_CELL(TwoModelStep, first, second)
  TwoModelStep(std::int64_t num_losses, const char* level)
      : num_losses(num_losses),
        initialized(amp::Initialize(
            {first, second}, {optimizer_x, optimizer_y},
            Quiet({.level = level, .loss_scale = "dynamic", .max_loss_scale = 1024, .num_losses = num_losses}))) {}

  Tensor Construct(Tensor x, Tensor y, Tensor both) {
    const std::vector<Parameter> shared = {first.weight, second.weight};
    const Tensor loss_x = ProbeLoss(first, x);
    const Tensor loss_y = ProbeLoss(second, y);
    const Tensor loss_both = reduce_sum(first(both) + second(both));
    const auto id = [&](std::int64_t loss) { return amp::ScaleLossOptions{.loss_id = num_losses == 1 ? 0 : loss}; };
    const Tensor of_x = ops::Backward(amp::ScaleLoss(loss_x, optimizer_x, id(0)), {first.weight})[0];
    const Tensor of_y = ops::Backward(amp::ScaleLoss(loss_y, optimizer_y, id(1)), {second.weight})[0];
    const auto of_both = ops::Backward(amp::ScaleLoss(loss_both, {optimizer_x, optimizer_y}, id(2)), shared);
    const bool stepped = optimizer_x({of_x + of_both[0]}) && optimizer_y({of_y + of_both[1]});
    return ops::Depend(loss_x + loss_y + loss_both, stepped);
  }

  absl::Status Run(float x, float y, float both) {
    return (*this)(Tensor::Full({1}, x), Tensor::Full({1}, y), Tensor::Full({1}, both)).status();
  }
  std::vector<float> Weights() const {
    return {first.weight.Value()->Item<float>(), second.weight.Value()->Item<float>()};
  }
  static std::vector<double> Scales() {
    std::vector<double> scales;
    const auto state = amp::StateDict();
    for (const auto& [name, scaler] : *state) scales.push_back(scaler.at("loss_scale"));
    return scales;
  }

  Probe first;
  Probe second;
  nn::SGD optimizer_x{first.TrainableParams(), {.learning_rate = 1.0}};
  nn::SGD optimizer_y{second.TrainableParams(), {.learning_rate = 1.0}};
  std::int64_t num_losses;
  absl::Status initialized;
};

TEST_P(ApexAtLevel, AMP_21_ALossSkipsTheOptimizersThatItFeedsAndShrinksItsOwnScale) {
  TwoModelStep step(3, GetParam());
  MPC_ASSERT_OK(step.initialized);
  using ::testing::ElementsAre;
  // Small enough that no gradient overflows in f16.
  const double s = 1024;
  MPC_ASSERT_OK(step.Run(1, 2, 4));
  EXPECT_THAT(step.Weights(), ElementsAre(-5, -6));
  EXPECT_THAT(step.Scales(), ElementsAre(s, s, s));
  MPC_ASSERT_OK(step.Run(kInfinity, 2, 4));
  EXPECT_THAT(step.Weights(), ElementsAre(-5, -12));
  EXPECT_THAT(step.Scales(), ElementsAre(s / 2, s, s));
  MPC_ASSERT_OK(step.Run(1, kNan, 4));
  EXPECT_THAT(step.Weights(), ElementsAre(-10, -12));
  EXPECT_THAT(step.Scales(), ElementsAre(s / 2, s / 2, s));
  MPC_ASSERT_OK(step.Run(1, 2, kInfinity));
  EXPECT_THAT(step.Weights(), ElementsAre(-10, -12));
  EXPECT_THAT(step.Scales(), ElementsAre(s / 2, s / 2, s / 2));
  EXPECT_EQ(*step.optimizer_x.step(), 2);
  EXPECT_EQ(*step.optimizer_y.step(), 2);
}

TEST(ScaleLoss, TheModelNamesTheLossAndTheGradientThatOverflows) {
  TwoModelStep step(3, "O0");
  Model model(step);
  ::testing::internal::CaptureStderr();
  const data::Row row = {Tensor::Full({1}, 1.0), Tensor::Full({1}, kInfinity), Tensor::Full({1}, 1.0)};
  MPC_ASSERT_OK(model.Train(1, data::GeneratorDataset(std::vector<data::Row>{row}, {"x", "y", "both"})));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the gradient of second.weight is not finite; loss scale of loss 1 1024 -> 512; step skipped"));
  EXPECT_EQ(model.skipped_steps(), 1);
}

TEST_P(ApexAtLevel, AMP_21_ASharedScalerShrinksOnceAStep) {
  TwoModelStep step(1, GetParam());
  MPC_ASSERT_OK(step.initialized);
  MPC_ASSERT_OK(step.Run(kInfinity, 2, 4));
  EXPECT_THAT(step.Weights(), ::testing::ElementsAre(0, -6));
  EXPECT_THAT(step.Scales(), ::testing::ElementsAre(512));
  MPC_ASSERT_OK(step.Run(kInfinity, kNan, kInfinity));
  EXPECT_THAT(step.Weights(), ::testing::ElementsAre(0, -6));
  EXPECT_THAT(step.Scales(), ::testing::ElementsAre(256));
}

// ---- One optimizer, two losses: accumulation, delays ----------------------------------------------------------------

/// Does with two losses of one model what a test asks for.
class TwoLossStep : public nn::TrainingStep {
 public:
  MPC_CELL(TwoLossStep, network)
  using Body = std::function<void(TwoLossStep&, const Tensor&, const Tensor&)>;
  TwoLossStep(amp::Options options, Body body)
      : body(std::move(body)), initialized(amp::Initialize(network, optimizer, Quiet(std::move(options)))) {}
  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = ProbeLoss(network, x);
    const Tensor loss_y = ProbeLoss(network, y);
    body(*this, loss_x, loss_y);
    return loss_x + loss_y;
  }
  absl::Status Run(float x, float y) { return (*this)(Tensor::Full({1}, x), Tensor::Full({1}, y)).status(); }
  float Weight() const { return network.weight.Value()->Item<float>(); }

  Body body;
  Probe network;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0}};
  absl::Status initialized;
};

TEST_P(ApexAtLevel, AMP_21_AnOptimizerWaitsForEveryLossItIsGivenWith) {
  TwoLossStep step(
      {.level = GetParam(), .loss_scale = "dynamic", .max_loss_scale = 1024, .num_losses = 2},
      [](TwoLossStep& self, const Tensor& loss_x, const Tensor& loss_y) {
        const auto& weights = self.optimizer.parameters();
        const Tensor of_x = ops::Backward(amp::ScaleLoss(loss_x, self.optimizer, {.loss_id = 0}), weights)[0];
        const Tensor of_y = ops::Backward(amp::ScaleLoss(loss_y, self.optimizer, {.loss_id = 1}), weights)[0];
        self.optimizer({of_x + of_y});
      });
  MPC_ASSERT_OK(step.Run(1, 2));
  EXPECT_EQ(step.Weight(), -3);
  MPC_ASSERT_OK(step.Run(1, kInfinity));
  MPC_ASSERT_OK(step.Run(kNan, 2));
  EXPECT_EQ(step.Weight(), -3);
  EXPECT_THAT(TwoModelStep::Scales(), ::testing::ElementsAre(512, 512));
}

/// Two models, a loss of each, one optimizer.
class OneOptimizerStep : public nn::TrainingStep {
 public:
  MPC_CELL(OneOptimizerStep, first, second)
  OneOptimizerStep(const char* level, std::int64_t num_losses)
      : num_losses(num_losses),
        initialized(amp::Initialize(
            {first, second}, optimizer,
            Quiet({.level = level, .loss_scale = "dynamic", .max_loss_scale = 1024, .num_losses = num_losses}))) {}
  Tensor Construct(Tensor x, Tensor y) {
    const Tensor loss_x = ProbeLoss(first, x);
    const Tensor loss_y = ProbeLoss(second, y);
    const Tensor of_x = ops::Backward(amp::ScaleLoss(loss_x, optimizer), {first.weight})[0];
    const Tensor scaled_y = amp::ScaleLoss(loss_y, optimizer, {.loss_id = num_losses - 1});
    optimizer({of_x, ops::Backward(scaled_y, {second.weight})[0]});
    return loss_x + loss_y;
  }
  std::vector<float> Run(float x, float y) {
    MPC_EXPECT_OK((*this)(Tensor::Full({1}, x), Tensor::Full({1}, y)).status());
    return {first.weight.Value()->To(DType::kF32).Item<float>(), second.weight.Value()->To(DType::kF32).Item<float>()};
  }

  Probe first;
  Probe second;
  nn::SGD optimizer{{first.weight, second.weight}, {.learning_rate = 1.0}};
  std::int64_t num_losses;
  absl::Status initialized;
};

TEST_P(ApexAtLevel, AMP_21_OneOptimizerOfTwoModelsIsSkippedByEitherLoss) {
  using ::testing::ElementsAre;
  OneOptimizerStep separate(GetParam(), 2);
  MPC_ASSERT_OK(separate.initialized);
  EXPECT_THAT(separate.Run(1, 2), ElementsAre(-1, -2));
  EXPECT_THAT(separate.Run(kInfinity, 2), ElementsAre(-1, -2));
  EXPECT_THAT(TwoModelStep::Scales(), ElementsAre(512, 1024));
  EXPECT_THAT(separate.Run(1, kNan), ElementsAre(-1, -2));
  EXPECT_THAT(TwoModelStep::Scales(), ElementsAre(512, 512));

  OneOptimizerStep shared(GetParam(), 1);
  EXPECT_THAT(shared.Run(1, kInfinity), ElementsAre(0, 0));
  EXPECT_THAT(shared.Run(1, 2), ElementsAre(-1, -2));
  EXPECT_THAT(TwoModelStep::Scales(), ElementsAre(512));
}

TEST(ScaleLoss, DelayedGradientsJoinThoseOfTheNextBackwardPass) {
  const auto delayed = [](TwoLossStep& self, const Tensor& loss_x, const Tensor& loss_y) {
    const auto& weights = self.optimizer.parameters();
    ops::Backward(amp::ScaleLoss(loss_x, self.optimizer, {.delay_unscale = true}), weights);
    self.optimizer(ops::Backward(amp::ScaleLoss(loss_y, self.optimizer), weights));
  };
  TwoLossStep step({}, delayed);
  MPC_ASSERT_OK(step.Run(1, 2));
  EXPECT_EQ(step.Weight(), -3);
  MPC_ASSERT_OK(step.Run(kInfinity, 2));
  EXPECT_EQ(step.Weight(), -3);
  EXPECT_THAT(TwoModelStep::Scales(), ::testing::ElementsAre(32768));
}

TEST(ScaleLoss, SteppingWhileUnscalingIsDelayedIsAnErrorOfTheGraph) {
  TwoLossStep step({}, [](TwoLossStep& self, const Tensor& loss_x, const Tensor&) {
    const Tensor scaled = amp::ScaleLoss(loss_x, self.optimizer, {.delay_unscale = true});
    self.optimizer(ops::Backward(scaled, self.optimizer.parameters()));
  });
  EXPECT_THAT(ErrorOf(step.Run(1, 2)), HasSubstr("SGD is called while amp::ScaleLoss delays the unscaling"));
}

TEST(ScaleLoss, MisuseIsAnErrorOfTheGraph) {
  TwoLossStep wrong_id({.num_losses = 2}, [](TwoLossStep& self, const Tensor& loss_x, const Tensor&) {
    amp::ScaleLoss(loss_x, self.optimizer, {.loss_id = 2});
  });
  EXPECT_THAT(ErrorOf(wrong_id.Run(1, 2)), HasSubstr("loss_id 2 is not in [0, num_losses), num_losses is 2"));
  TwoLossStep foreign({}, [](TwoLossStep& self, const Tensor& loss_x, const Tensor&) {
    static nn::SGD other(self.network.TrainableParams());
    amp::ScaleLoss(loss_x, other);
  });
  EXPECT_THAT(ErrorOf(foreign.Run(1, 2)), HasSubstr("SGD was not given to amp::Initialize"));
  EXPECT_THAT(ErrorOf(amp::ScaleLoss(Tensor::Full({}, 1.0), wrong_id.optimizer).status()),
              HasSubstr("amp::ScaleLoss belongs into the Construct of a training step"));
}

// ---- Initialize -----------------------------------------------------------------------------------------------------

TEST(Initialize, AMP_28_DisabledTrainsAsWithoutIt) {
  ApexStep step(Quiet({.level = "O2", .enabled = false}));
  MPC_ASSERT_OK(step.initialized);
  MPC_ASSERT_OK(step.Run(2.0f));
  MPC_ASSERT_OK(step.Run(kInfinity));
  EXPECT_FALSE(std::isfinite(step.Weight()));
  EXPECT_TRUE(amp::StateDict()->empty());
}

TEST(Initialize, ReturnsWhatItsOptionsContradict) {
  Probe network;
  nn::SGD optimizer(network.TrainableParams());
  EXPECT_THAT(ErrorOf(amp::Initialize(network, optimizer, {.level = "02"})), HasSubstr("the letter O"));
  nn::SGD empty({});
  EXPECT_THAT(ErrorOf(amp::Initialize(network, empty, Quiet({}))), HasSubstr("got no parameters"));
  MPC_EXPECT_OK(amp::Initialize(network, Quiet({.level = "O2"})));
}

TEST(Initialize, TheNetworkAndAModelOfItRunAtItsLevel) {
  SetSeed(7);
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  MPC_ASSERT_OK(amp::Initialize(network, optimizer, Quiet({.level = "O2", .dtype = "bf16"})));
  Model model(network, loss, optimizer);
  EXPECT_EQ(model.precision().level, "O2");
  MPC_ASSERT_OK(model.Train(1, GoodBatches({6}, 3)));
  EXPECT_GT(Count(model.compiled().front()->final_ir.Print(), "bf16"), 0);
  Model contradiction(network, loss, optimizer, {.amp_level = "O3"});
  EXPECT_THAT(ErrorOf(contradiction.status()), HasSubstr("amp::Initialize gave TwoLayers level O2"));
}

TEST(Initialize, ItsScalerIsTheModels) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  MPC_ASSERT_OK(amp::Initialize(network, optimizer, Quiet({.level = "O2"})));
  Model model(network, loss, optimizer);
  MPC_ASSERT_OK(model.Train(1, Batches({{Tensor::Full({1}, kInfinity), Tensor::Full({1}, 0.0)}})));
  EXPECT_EQ(model.loss_scale(), 32768);
  EXPECT_EQ(amp::StateDict()->at("loss_scaler0").at("loss_scale"), 32768);
}

TEST(Initialize, OptionsOfAModelAgreeWithIt) {
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::SGD optimizer(network.TrainableParams());
  MPC_ASSERT_OK(amp::Initialize(network, optimizer, Quiet({.level = "O2", .deny_add = {"relu"}})));
  const auto error = [&](ModelOptions options) {
    options.amp.verbosity = 0;
    return ErrorOf(Model(network, loss, optimizer, std::move(options)).status());
  };
  EXPECT_EQ(error({.amp = {.loss_scale = 128}}),
            "Model: amp.loss_scale = 128, but amp::Initialize gave TwoLayers loss_scale dynamic; give one of them");
  EXPECT_EQ(error({.amp_level = "O2", .amp_dtype = DType::kBF16}),
            "Model: amp.dtype = bf16, but amp::Initialize gave TwoLayers dtype f16; give one of them");
  EXPECT_THAT(error({.keep_batchnorm_fp32 = false}), HasSubstr("gave TwoLayers keep_batchnorm_fp32 true"));
  EXPECT_THAT(error({.amp = {.level = "O2", .master_weights = false}}),
              HasSubstr("gave TwoLayers master_weights true"));
  EXPECT_THAT(error({.amp = {.enabled = false}}), HasSubstr("amp.enabled = false, but amp::Initialize gave TwoLayers"));
  EXPECT_THAT(error({.amp = {.cast_model_outputs = "f16"}}), HasSubstr("gave TwoLayers cast_model_outputs f32"));
  EXPECT_THAT(error({.amp = {.max_loss_scale = 64}}), HasSubstr("max_loss_scale = 64, but"));
  EXPECT_THAT(error({.amp = {.num_losses = 2}}), HasSubstr("gave TwoLayers num_losses 1"));
  EXPECT_THAT(error({.amp = {.allow_add = {"softmax"}}}), HasSubstr("gave TwoLayers no allow_add"));
  EXPECT_EQ(error({.amp = {.deny_add = {"gelu"}}}),
            "Model: amp.deny_add = gelu, but amp::Initialize gave TwoLayers deny_add relu; give one of them");
  // What says the same is no contradiction, and a manager of the Model's takes the place of the scaler.
  Model agrees(network, loss, optimizer,
               {.amp_level = "O2",
                .keep_batchnorm_fp32 = true,
                .amp_dtype = DType::kF16,
                .amp = {.loss_scale = "dynamic", .max_loss_scale = "16777216", .verbosity = 0, .deny_add = {"relu"}}});
  MPC_EXPECT_OK(agrees.status());
  EXPECT_EQ(agrees.loss_scale(), 65536);
  Model managed(network, loss, optimizer, {.loss_scale_manager = FixedLossScaleManager({.loss_scale = 256})});
  MPC_EXPECT_OK(managed.status());
  EXPECT_EQ(managed.loss_scale(), 256);
}

// The step at a low level is scaled, whichever optimizer Initialize was given.
TEST(Initialize, ItsScalerIsTheModelsWithoutTheOptimizerToo) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  const nn::EMA earlier(optimizer);
  MPC_ASSERT_OK(amp::Initialize(network, Quiet({.level = "O2"})));
  const data::Dataset overflow = Batches({{Tensor::Full({1}, kInfinity), Tensor::Full({1}, 0.0)}});
  Model model(network, loss, optimizer);
  MPC_ASSERT_OK(model.Train(1, overflow));
  EXPECT_EQ(model.loss_scale(), 32768);
  MPC_ASSERT_OK(amp::Initialize(network, optimizer, Quiet({.level = "O2"})));
  nn::EMA averaging = earlier;
  Model averaged(network, loss, averaging);
  MPC_ASSERT_OK(averaged.Train(1, overflow));
  EXPECT_EQ(amp::StateDict()->at("loss_scaler0").at("loss_scale"), 32768);
}

TEST(StateDict, RoundTripsAndRejectsWhatDoesNotFit) {
  TwoModelStep step(3, "O1");
  MPC_ASSERT_OK(step.initialized);
  MPC_ASSERT_OK(step.Run(1, kInfinity, 4));
  const auto state = *amp::StateDict();
  EXPECT_EQ(state.size(), 3u);
  TwoModelStep other(3, "O1");
  MPC_ASSERT_OK(amp::LoadStateDict(state));
  EXPECT_EQ(*amp::StateDict(), state);
  auto wrong = state;
  wrong.erase("loss_scaler1");
  wrong["loss_scaler7"] = wrong["loss_scaler0"];
  wrong["loss_scaler0"].erase("unskipped");
  wrong["loss_scaler2"]["loss_scale"] = 0;
  wrong["loss_scaler2"]["unskipped"] = 1.5;
  const std::string message = ErrorOf(amp::LoadStateDict(wrong));
  for (const char* part : {"loss_scaler0 lacks 'unskipped'", "loss_scaler1 is missing", "loss_scaler2.loss_scale = 0",
                           "loss_scaler2.unskipped = 1.5", "'loss_scaler7' is unknown"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
  EXPECT_EQ(*amp::StateDict(), state);
}

TEST(StateDict, OfACellAndAnOptimizerAreF32) {
  ApexStep step(Quiet({.level = "O2", .max_loss_scale = 1024}));
  MPC_ASSERT_OK(step.Run(2.0f));
  const auto of_cell = amp::StateDict(step.network);
  ASSERT_TRUE(of_cell.ok());
  EXPECT_EQ(of_cell->at("weight").dtype(), DType::kF32);
  EXPECT_EQ(of_cell->at("weight").Item<float>(), -2.0f);
  EXPECT_EQ(amp::StateDict(step.optimizer)->count("optimizer.learning_rate"), 1u);
  EXPECT_EQ(amp::MasterParams(step.optimizer).size(), 1u);
}

/// A network and an optimizer whose groups were asked for from its parts.
struct Grouped {
  TwoLayers network;
  nn::Momentum optimizer{
      {{.params = network.fc1.TrainableParams()}, {.params = network.fc2.TrainableParams(), .learning_rate = 0.5}},
      {.learning_rate = 0.25}};
};

TEST(StateDict, OfGroupsFromPartsNeedsNamesOfTheWhole) {
  Grouped given;
  const std::string twice =
      "two entries are named 'optimizer.weight.velocity', because their parameters were named by the paths of "
      "different "
      "Cells";
  EXPECT_THAT(ErrorOf(amp::StateDict(given.optimizer).status()), HasSubstr("amp::StateDict: " + twice));
  EXPECT_THAT(ErrorOf(amp::LoadStateDict(given.optimizer, {})), HasSubstr("amp::LoadStateDict: " + twice));
  MPC_ASSERT_OK(amp::Initialize(given.network, given.optimizer, Quiet({.level = "O0"})));
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  Model model(given.network, loss, given.optimizer);
  MPC_ASSERT_OK(model.Train(1, GoodBatches({6}, 2)));
  const auto state = amp::StateDict(given.optimizer);
  MPC_ASSERT_OK(state.status());
  EXPECT_EQ(state->size(), 7u) << "two rates, the step, four slots";
  Grouped fresh;
  MPC_ASSERT_OK(amp::Initialize(fresh.network, fresh.optimizer, Quiet({.level = "O0"})));
  MPC_ASSERT_OK(amp::LoadStateDict(fresh.optimizer, *state));
  const auto loaded = amp::StateDict(fresh.optimizer);
  MPC_ASSERT_OK(loaded.status());
  EXPECT_EQ(loaded->size(), state->size());
  for (const auto& [name, value] : *loaded) {
    EXPECT_EQ(value.ToFloats(), state->at(name).ToFloats()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, ApexAtLevel, ::testing::Values("O0", "O1", "O2", "O3"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mpc::testing
