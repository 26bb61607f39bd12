// What each level computes in which type, seen from the public API.
#include <regex>

#include "models/bnnet.h"
#include "tests/training/probe.h"
#include "tests/training/traced_ir.h"

namespace mpc::testing {
namespace {

class PrecisionAtLevel : public ::testing::TestWithParam<Level> {};

// AMP-8: written by the optimizer, by a load, by SetData.
TEST_P(PrecisionAtLevel, AMP_8_ChangedWeightsAreSeenByTheNextStep) {
  const FixedLossScaleManager scale({.loss_scale = 64});
  const Shape features = {6};
  const data::Dataset batch = Batches({MakeBatch(features, 8, 0)});
  Training<TwoLayers> training(GetParam(), scale);
  LossRecorder recorder;
  for (int step = 0; step < 3; ++step) MPC_ASSERT_OK(training.model->Train(1, batch, {recorder}));
  EXPECT_NE(recorder.losses[0], recorder.losses[1]);
  EXPECT_NE(recorder.losses[1], recorder.losses[2]);

  // The first weights again give the first loss again, bit for bit.
  Training<TwoLayers> fresh(GetParam(), scale);
  for (const auto& [name, parameter] : fresh.network->ParametersAndNames()) {
    MPC_ASSERT_OK(training.network->SetParameter(name, *parameter.Value()));
  }
  MPC_ASSERT_OK(training.model->Train(1, batch, {recorder}));
  EXPECT_EQ(recorder.losses[3], recorder.losses[0]);
  absl::StatusOr<Tensor> before = training.model->Predict(Values({2, 6}));
  MPC_ASSERT_OK(training.network->fc2.bias.SetData(Tensor::Full({3}, 4.0)));
  absl::StatusOr<Tensor> after = training.model->Predict(Values({2, 6}));
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_NE(before->ToFloats(), after->ToFloats());
}

/// A network with its loss inside, written with operations.
class InnerLoss : public nn::Cell {
 public:
  MPC_CELL(InnerLoss, fc)
  explicit InnerLoss(bool by_hand) : by_hand_(by_hand) {}
  Tensor Construct(Tensor x, Tensor y) {
    if (by_hand_) return reduce_mean(square(fc(x) - y));
    return softmax_cross_entropy(fc(x), y, "mean");
  }
  nn::Dense fc{6, 3};

 private:
  bool by_hand_;
};

// AMP-32.
TEST_P(PrecisionAtLevel, AMP_32_LossesInsideTheNetworkAreF32) {
  for (bool by_hand : {false, true}) {
    SetSeed(7);
    InnerLoss network(by_hand);
    nn::SGD optimizer(network.TrainableParams());
    nn::TrainOneStepCell step(network, optimizer);
    Model model(
        step,
        {.amp_level = GetParam().level, .loss_scale_manager = FixedLossScaleManager(), .amp_dtype = GetParam().dtype});
    const std::string ir = IrAt(model, {{DType::kF32, {8, 6}}, {DType::kF32, {8, 3}}}, "amp");
    const std::vector<std::string> losses = LinesWith(ir, by_hand ? "mpc.reduce_mean" : "mpc.softmax_cross_entropy");
    ASSERT_EQ(losses.size(), 1u) << ir;
    EXPECT_FALSE(IsLow(losses[0])) << losses[0];
    const std::vector<std::string> matmuls = LinesWith(ir, "mpc.matmul");
    ASSERT_EQ(matmuls.size(), 1u);
    // At auto so small a product does not pay for its casts on most devices.
    if (GetParam().level != "auto") {
      EXPECT_EQ(IsLow(matmuls[0]), GetParam().dtype.has_value()) << matmuls[0];
    }
    MPC_EXPECT_OK(model.Train(1, Batches({{Values({8, 6}), MakeBatch({6}, 8, 0)[1]}})));
  }
}

// AMP-33: 1 + 2^-20 is 1 in f16 and bf16.
TEST_P(PrecisionAtLevel, AMP_33_FloatingLabelsNeverPassThroughLow) {
  Probe network(1, 1.0);
  nn::MSELoss loss;
  nn::SGD optimizer(network.TrainableParams());
  Model model(network, loss, optimizer,
              {.amp_level = GetParam().level, .loss_scale_manager = nullptr, .amp_dtype = GetParam().dtype});
  const float label = 1.0f + 0x1p-20f;
  LossRecorder recorder;
  MPC_ASSERT_OK(model.Train(1, Batches({{Tensor::From({1.0f}, {1}), Tensor::From({label}, {1})}}), {recorder}));
  EXPECT_EQ(recorder.losses[0], 0x1p-40f);
}

TEST_P(PrecisionAtLevel, AMP_33_IntegerLabelsKeepTheirType) {
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::SGD optimizer(network.TrainableParams());
  Model model(network, loss, optimizer, {.amp_level = GetParam().level, .amp_dtype = GetParam().dtype});
  const std::string ir = IrAt(model, {{DType::kF32, {8, 6}}, {DType::kI32, {8}}}, "amp");
  for (const std::string& cast : LinesWith(ir, "mpc.cast")) EXPECT_EQ(cast.find("xi32"), std::string::npos) << cast;
  const std::vector<std::string> losses = LinesWith(ir, "mpc.softmax_cross_entropy");
  ASSERT_EQ(losses.size(), 1u);
  EXPECT_NE(losses[0].find("tensor<8x3xf32>, tensor<8xi32>"), std::string::npos) << losses[0];
}

INSTANTIATE_TEST_SUITE_P(Levels, PrecisionAtLevel, ::testing::ValuesIn(AllLevels()), LevelName);

// AMP-20.
TEST(PowersOfTwo, AMP_20_ScaledTrainingInF32EqualsUnscaledTraining) {
  const data::Dataset batches = GoodBatches({6}, 4);
  Training<TwoLayers> unscaled({"O0", {}}, nullptr);
  MPC_ASSERT_OK(unscaled.model->Train(2, batches));
  const Snapshot expected = WithoutScaler(StateOf(*unscaled.model));
  for (int k = 0; k <= 20; ++k) {
    Training<TwoLayers> scaled({"O0", {}}, FixedLossScaleManager({.loss_scale = std::ldexp(1.0, k)}));
    MPC_ASSERT_OK(scaled.model->Train(2, batches));
    EXPECT_EQ(Differences(expected, WithoutScaler(StateOf(*scaled.model))), std::vector<std::string>{}) << "2^" << k;
    EXPECT_EQ(scaled.model->skipped_steps(), 0);
  }
}

const std::vector<TensorSpec> kImages = {{DType::kF32, {4, 1, 32, 32}}, {DType::kF32, {4, 10}}};

// AMP-28.
TEST(Disabled, AMP_28_IsTheO0Program) {
  Training<models::BnNet> defaults({"O0", {}});
  SetSeed(7);
  models::BnNet network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
  Model plain(network, loss, optimizer);
  const std::string ir = IrAt(plain, kImages, "final");
  EXPECT_EQ(ir, IrAt(*defaults.model, kImages, "final"));
  EXPECT_EQ(Count(ir, "mpc.cast"), 0);
  EXPECT_FALSE(IsLow(ir));
  EXPECT_EQ(Count(ir, "mpc.all_finite"), 0);
}

/// The IR without the record of why each type was chosen: the level's name is in it.
std::string WithoutReasons(const std::string& ir) { return std::regex_replace(ir, std::regex(" as <[^>]*>"), ""); }

/// [N, 6] -> [N, 3]. What leaves the norm is f32 if it is kept f32, else low and then cast: the two differ in rounding.
class NormLast : public nn::Cell {
 public:
  MPC_CELL(NormLast, fc, norm)
  Tensor Construct(Tensor x) { return norm(fc(x)); }
  nn::Dense fc{6, 3};
  nn::BatchNorm1d norm{3};
};

// AMP-35.
TEST(KeepBatchNorm, AMP_35_SwitchesTheCastsAndNotTheScaling) {
  for (DType dtype : {DType::kF16, DType::kBF16}) {
    Training<NormLast> o2({"O2", dtype});
    Training<NormLast> o3({"O3", dtype});
    Training<NormLast> o2_low({"O2", dtype}, {}, {.learning_rate = 0.05}, false);
    Training<NormLast> o3_kept({"O3", dtype}, {}, {.learning_rate = 0.05}, true);
    const auto ir = [](const Training<NormLast>& training) {
      return WithoutReasons(IrAt(*training.model, {{DType::kF32, {4, 6}}, {DType::kF32, {4, 3}}}, "amp"));
    };
    EXPECT_EQ(ir(o2_low), ir(o3));
    EXPECT_EQ(ir(o3_kept), ir(o2));
    EXPECT_NE(ir(o2), ir(o3));
    EXPECT_EQ(o2_low.model->loss_scale_config().mode, o2.model->loss_scale_config().mode);
    EXPECT_NE(o2_low.model->loss_scale_config().mode, LossScaleConfig::Mode::kNone);
    EXPECT_EQ(o3_kept.model->loss_scale_config().mode, LossScaleConfig::Mode::kNone);
  }
}

}  // namespace
}  // namespace mpc::testing
