// The low copies of parameters: state that optimizers write and everything else makes stale.
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

const Shape kFeatures = {6};
const Shape kImage = {2, 6, 6};

std::vector<Level> LowLevels() {
  return {{"O1", DType::kF16},  {"O1", DType::kBF16}, {"O2", DType::kF16},
          {"O2", DType::kBF16}, {"O3", DType::kF16},  {"O3", DType::kBF16}};
}

std::shared_ptr<const runtime::StateEntry> LowCopyOf(const Model& model, const std::string& parameter, DType low) {
  for (const auto& entry : model.DerivedState()) {
    if (entry->name() == parameter + "." + std::string(DTypeName(low))) return entry;
  }
  return nullptr;
}

std::vector<std::uint8_t> BytesOf(const runtime::StateEntry& entry) {
  std::vector<std::uint8_t> bytes(entry.spec().bytes());
  EXPECT_TRUE(entry.Read(absl::MakeSpan(bytes)).ok());
  return bytes;
}

/// Parameters whose shadow is not the rounded master, bit for bit.
std::vector<std::string> StaleLowCopies(const Model& model, nn::Cell& network, DType low) {
  std::vector<std::string> stale;
  for (const auto& [name, parameter] : network.ParametersAndNames()) {
    const auto shadow = LowCopyOf(model, name, low);
    if (shadow == nullptr) continue;
    const Tensor rounded = parameter.Value()->To(low);
    if (BytesOf(*shadow) != std::vector<std::uint8_t>(rounded.bytes().begin(), rounded.bytes().end())) {
      stale.push_back(name);
    }
  }
  return stale;
}

const std::vector<std::string> kNone;

/// Everything that reads a shadow reads it: a step holds no weight cast.
int WeightCasts(const Model& model) {
  int casts = 0;
  for (const compiler::CompileResult* result : model.compiled()) {
    for (const runtime::Instruction& instruction : result->program.step().instructions) {
      if (instruction.kernel != "cast") continue;
      const runtime::Value& operand = result->program.values[instruction.inputs[0]];
      casts += operand.storage == runtime::Storage::kState;
    }
  }
  return casts;
}

class ShadowAtLevel : public ::testing::TestWithParam<Level> {
 protected:
  DType low() const { return *GetParam().dtype; }
  const DynamicLossScaleManager dynamic_{{.init_loss_scale = 256}};
};

TEST_P(ShadowAtLevel, AMP_22_MasterEqualsShadowAfterEveryStepThroughSkips) {
  Training<ConvNorm> training(GetParam(), dynamic_);
  for (std::int64_t step = 0; step < 6; ++step) {
    data::Row batch = MakeBatch(kImage, 8, step);
    if (step % 3 == 2) batch = WithBadValue(batch, kInfinity);
    MPC_ASSERT_OK(training.model->Train(1, Batches({batch})));
    for (const char* weight : {"conv.weight", "fc.weight", "fc.bias"}) {
      EXPECT_NE(LowCopyOf(*training.model, weight, low()), nullptr) << weight;
    }
    EXPECT_EQ(StaleLowCopies(*training.model, *training.network, low()), kNone) << "after step " << step;
  }
  EXPECT_EQ(training.model->skipped_steps(), 2);
  EXPECT_EQ(WeightCasts(*training.model), 0);
}

// Each optimizer writes the shadow in its own update; steps after a refresh would hide one that does not.
TEST_P(ShadowAtLevel, AMP_22_EveryOptimizerWritesItsShadow) {
  const auto check = [&](const char* name, auto make_optimizer) {
    SetSeed(7);
    TwoLayers network;
    nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
    auto optimizer = make_optimizer(network.TrainableParams());
    Model model(network, loss, optimizer, {.amp_level = GetParam().level, .amp_dtype = GetParam().dtype});
    MPC_ASSERT_OK(model.Train(3, GoodBatches(kFeatures, 2)));
    EXPECT_EQ(StaleLowCopies(model, network, low()), kNone) << name;
    const auto shadow = LowCopyOf(model, "fc1.weight", low());
    ASSERT_NE(shadow, nullptr) << name;
    EXPECT_TRUE(shadow->Follows(*network.fc1.weight.entry())) << name << ": nothing is left to rebuild";
  };
  check("sgd", [](auto parameters) { return nn::SGD(parameters, {.learning_rate = 0.05}); });
  check("momentum", [](auto parameters) { return nn::Momentum(parameters, {.learning_rate = 0.05}); });
  check("adam", [](auto parameters) { return nn::Adam(parameters, {.learning_rate = 0.01}); });
  check("adam_weight_decay", [](auto parameters) { return nn::AdamWeightDecay(parameters, {.weight_decay = 0.01}); });
  check("adamw", [](auto parameters) { return nn::AdamW(parameters, {.learning_rate = 0.01}); });
  check("lamb", [](auto parameters) { return nn::Lamb(parameters, {.learning_rate = 0.01}); });
}

TEST_P(ShadowAtLevel, AMP_8_ADifferentWeightIsSeenByTheNextStep) {
  Training<TwoLayers> written(GetParam(), dynamic_);
  Training<TwoLayers> fresh(GetParam(), dynamic_);
  const Tensor probe = Values({4, 6}, 55);
  const Tensor weight = Values({8, 6}, 77);
  MPC_ASSERT_OK(written.model->Train(1, GoodBatches(kFeatures, 2)));
  for (const auto& [name, parameter] : written.network->ParametersAndNames()) {
    MPC_ASSERT_OK(fresh.network->SetParameter(name, *parameter.Value()));
  }
  MPC_ASSERT_OK(written.network->fc1.weight.SetData(weight));
  MPC_ASSERT_OK(fresh.network->fc1.weight.SetData(weight));
  EXPECT_EQ(StaleLowCopies(*written.model, *written.network, low()), std::vector<std::string>{"fc1.weight"});
  EXPECT_EQ(written.model->Predict(probe)->ToFloats(), fresh.model->Predict(probe)->ToFloats());
  EXPECT_EQ(StaleLowCopies(*written.model, *written.network, low()), kNone);

  // The training step reads it too, before its optimizer writes the next one.
  MPC_ASSERT_OK(written.network->fc1.weight.SetData(weight));
  LossRecorder of_written, of_fresh;
  MPC_ASSERT_OK(written.model->Train(1, GoodBatches(kFeatures, 1), {of_written}));
  MPC_ASSERT_OK(fresh.model->Train(1, GoodBatches(kFeatures, 1), {of_fresh}));
  EXPECT_EQ(of_written.losses, of_fresh.losses);
  EXPECT_EQ(StaleLowCopies(*written.model, *written.network, low()), kNone);
}

TEST_P(ShadowAtLevel, AMP_8_ALoadedWeightIsSeenByTheNextStep) {
  Training<TwoLayers> source(GetParam(), dynamic_);
  MPC_ASSERT_OK(source.model->Train(1, GoodBatches(kFeatures, 3)));
  const std::string path = ::testing::TempDir() + "shadow_" + LevelName({GetParam(), 0}) + ".safetensors";
  MPC_ASSERT_OK(source.model->SaveCheckpoint(path));
  Training<TwoLayers> loaded(GetParam(), dynamic_);
  MPC_ASSERT_OK(loaded.model->Train(1, GoodBatches(kFeatures, 1)));
  const absl::Status status = loaded.model->LoadCheckpoint(path).status();
  MPC_ASSERT_OK(status);
  const Tensor probe = Values({4, 6}, 55);
  EXPECT_EQ(loaded.model->Predict(probe)->ToFloats(), source.model->Predict(probe)->ToFloats());
  EXPECT_EQ(StaleLowCopies(*loaded.model, *loaded.network, low()), kNone);
}

TEST_P(ShadowAtLevel, AMP_8_AnotherModelsUpdateIsSeenByTheNextStep) {
  Training<TwoLayers> training(GetParam(), dynamic_);
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 1)));
  nn::SGD other_optimizer(training.network->TrainableParams(), {.learning_rate = 0.5});
  Model full(*training.network, training.loss, other_optimizer, {.amp_level = "O0"});
  MPC_ASSERT_OK(full.Train(1, GoodBatches(kFeatures, 1)));
  EXPECT_NE(StaleLowCopies(*training.model, *training.network, low()), kNone) << "level O0 writes no shadow";
  ASSERT_TRUE(training.model->Predict(Values({4, 6})).ok());
  EXPECT_EQ(StaleLowCopies(*training.model, *training.network, low()), kNone);
}

TEST_P(ShadowAtLevel, AMP_8_FreezingAndUnfreezingKeepsShadowsFresh) {
  Training<TwoLayers> training(GetParam(), dynamic_);
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 1)));
  MPC_ASSERT_OK(training.network->SetRequiresGrad("fc1", false));
  MPC_ASSERT_OK(training.network->fc1.weight.SetData(Values({8, 6}, 78)));
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 2)));
  EXPECT_EQ(training.network->fc1.weight.Value()->ToFloats(), Values({8, 6}, 78).ToFloats());
  EXPECT_EQ(StaleLowCopies(*training.model, *training.network, low()), kNone);
  MPC_ASSERT_OK(training.network->SetRequiresGrad("fc1", true));
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 2)));
  EXPECT_NE(training.network->fc1.weight.Value()->ToFloats(), Values({8, 6}, 78).ToFloats());
  EXPECT_EQ(StaleLowCopies(*training.model, *training.network, low()), kNone);
}

TEST_P(ShadowAtLevel, NothingIsRebuiltWhileNothingChanges) {
  Training<TwoLayers> training(GetParam(), dynamic_);
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 2)));
  const Tensor probe = Values({4, 6}, 55);
  const std::uint64_t version = LowCopyOf(*training.model, "fc1.weight", low())->version();
  ASSERT_TRUE(training.model->Predict(probe).ok());
  ASSERT_TRUE(training.model->Predict(probe).ok());
  EXPECT_EQ(LowCopyOf(*training.model, "fc1.weight", low())->version(), version)
      << "Predict reads the shadow that the last step wrote";
}

TEST_P(ShadowAtLevel, ShadowsAreNoPartOfTheState) {
  Training<TwoLayers> training(GetParam(), dynamic_);
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 1)));
  EXPECT_EQ(training.model->DerivedState().size(), 4u);
  for (const Parameter& entry : training.model->AllState())
    EXPECT_NE(entry.entry()->role(), Role::kDerived) << entry.name();
}

INSTANTIATE_TEST_SUITE_P(Levels, ShadowAtLevel, ::testing::ValuesIn(LowLevels()), LevelName);

TEST(Shadows, LevelO0HasNone) {
  Training<TwoLayers> training({"O0", {}});
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 1)));
  EXPECT_TRUE(training.model->DerivedState().empty());
}

/// Training without masters.
struct LowTraining {
  explicit LowTraining(DType low) {
    SetSeed(7);
    network = std::make_unique<TwoLayers>();
    optimizer = std::make_unique<nn::Adam>(network->TrainableParams(), nn::AdamOptions{.learning_rate = 0.01});
    amp::Options options;
    options.level = "O3";
    options.dtype = low;
    options.master_weights = false;
    model = std::make_unique<Model>(*network, loss, *optimizer, ModelOptions{.amp = options});
  }
  std::unique_ptr<TwoLayers> network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  std::unique_ptr<nn::Adam> optimizer;
  std::unique_ptr<Model> model;
};

class WithoutMasters : public ::testing::TestWithParam<DType> {};

TEST_P(WithoutMasters, ParametersAreStoredLowAndSlotsInF32) {
  LowTraining training(GetParam());
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 2)));
  for (const auto& [name, parameter] : training.network->ParametersAndNames()) {
    EXPECT_EQ(parameter.dtype(), GetParam()) << name;
    EXPECT_EQ(parameter.Value()->dtype(), GetParam()) << name;
  }
  EXPECT_EQ(training.model->State("optimizer.fc1.weight.moment1").dtype(), DType::kF32);
  EXPECT_TRUE(training.model->DerivedState().empty()) << "what is stored low needs no low copy";
  EXPECT_EQ(WeightCasts(*training.model), 0);
}

TEST_P(WithoutMasters, InitialValuesAreRoundedOnce) {
  LowTraining training(GetParam());
  SetSeed(7);
  TwoLayers full;
  const Tensor initial = *full.fc1.weight.Value();
  ASSERT_TRUE(training.model->Predict(Values({4, 6})).ok());
  EXPECT_EQ(training.network->fc1.weight.Value()->ToFloats(), initial.To(GetParam()).ToFloats());
}

TEST_P(WithoutMasters, OneProgramServesEveryStepOfOneShape) {
  LowTraining training(GetParam());
  MPC_ASSERT_OK(training.model->Train(2, GoodBatches(kFeatures, 3)));
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 3)));
  ASSERT_TRUE(training.model->Predict(Values({4, 6})).ok());
  ASSERT_TRUE(training.model->Predict(Values({4, 6})).ok());
  EXPECT_EQ(training.model->compiled().size(), 2u) << "a training step and a prediction";
}

TEST_P(WithoutMasters, TrainingLowersTheLossAndPredictionSeesIt) {
  LowTraining training(GetParam());
  LossRecorder recorder;
  MPC_ASSERT_OK(training.model->Train(40, GoodBatches(kFeatures, 1), {recorder}));
  EXPECT_LT(recorder.losses.back(), 0.7f * recorder.losses.front());
}

TEST_P(WithoutMasters, SetDataTakesF32AndRoundsIt) {
  LowTraining training(GetParam());
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 1)));
  const Tensor weight = Values({8, 6}, 77);
  MPC_ASSERT_OK(training.network->fc1.weight.SetData(weight));
  EXPECT_EQ(training.network->fc1.weight.Value()->ToFloats(), weight.To(GetParam()).ToFloats());
  EXPECT_FALSE(training.network->fc1.weight.SetData(Values({6, 8})).ok());
}

TEST_P(WithoutMasters, ADirectCallSeesTheParametersAsTheyAreStored) {
  LowTraining training(GetParam());
  const Tensor probe = Values({4, 6}, 55);
  const Tensor before = (*training.network)(probe);
  MPC_ASSERT_OK(before.status());
  MPC_ASSERT_OK(training.model->Train(3, GoodBatches(kFeatures, 2)));
  TwoLayers full;
  for (const auto& [name, parameter] : training.network->ParametersAndNames()) {
    MPC_ASSERT_OK(full.SetParameter(name, parameter.Value()->To(DType::kF32)));
  }
  EXPECT_EQ((*training.network)(probe).ToFloats(), full(probe).ToFloats());
  EXPECT_NE((*training.network)(probe).ToFloats(), before.ToFloats());
}

TEST_P(WithoutMasters, ACheckpointContinuesBitForBit) {
  const std::string path = ::testing::TempDir() + "low_" + std::string(DTypeName(GetParam())) + ".safetensors";
  LowTraining through(GetParam());
  MPC_ASSERT_OK(through.model->Train(1, GoodBatches(kFeatures, 2)));
  MPC_ASSERT_OK(through.model->SaveCheckpoint(path));
  MPC_ASSERT_OK(through.model->Train(1, GoodBatches(kFeatures, 3)));
  LowTraining resumed(GetParam());
  const absl::Status loaded = resumed.model->LoadCheckpoint(path, {.continue_run = false}).status();
  MPC_ASSERT_OK(loaded);
  MPC_ASSERT_OK(resumed.model->Train(1, GoodBatches(kFeatures, 3)));
  EXPECT_EQ(Differences(StateOf(*through.model), StateOf(*resumed.model)), kNone);
}

TEST_P(WithoutMasters, AtO2AKeptNormKeepsItsMastersAndASkippedStepEveryBit) {
  SetSeed(7);
  ConvNorm network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  amp::Options options;
  options.level = "O2";
  options.dtype = GetParam();
  options.master_weights = false;
  Model model(network, loss, optimizer,
              {.loss_scale_manager = DynamicLossScaleManager({.init_loss_scale = 256}), .amp = options});
  MPC_ASSERT_OK(model.Train(1, GoodBatches(kImage, 2)));
  EXPECT_EQ(network.conv.weight.dtype(), GetParam());
  EXPECT_EQ(network.fc.bias.dtype(), GetParam());
  EXPECT_EQ(network.norm.gamma.dtype(), DType::kF32);
  EXPECT_EQ(model.skipped_steps(), 0);
  const Snapshot before = WithoutScaler(StateOf(model));
  MPC_ASSERT_OK(model.Train(1, Batches({WithBadValue(MakeBatch(kImage, 8, 5), kInfinity)})));
  EXPECT_EQ(model.skipped_steps(), 1);
  EXPECT_EQ(Differences(before, WithoutScaler(StateOf(model))), kNone);
}

// A full-precision Program reads what is stored low, widened, and writes it rounded.
TEST_P(WithoutMasters, AnO0ModelTrainsTheSameParameters) {
  LowTraining training(GetParam());
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 1)));
  nn::SGD optimizer(training.network->TrainableParams(), {.learning_rate = 0.5});
  Model full(*training.network, training.loss, optimizer, {.amp_level = "O0"});
  const std::vector<float> before = training.network->fc1.weight.Value()->ToFloats();
  MPC_ASSERT_OK(full.Train(1, GoodBatches(kFeatures, 2)));
  EXPECT_EQ(training.network->fc1.weight.dtype(), GetParam());
  EXPECT_NE(training.network->fc1.weight.Value()->ToFloats(), before);
  const Tensor probe = Values({4, 6}, 55);
  ASSERT_TRUE(full.Predict(probe).ok());
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 1)));
}

INSTANTIATE_TEST_SUITE_P(Types, WithoutMasters, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(DTypeName(info.param)); });

}  // namespace
}  // namespace mpc::testing
