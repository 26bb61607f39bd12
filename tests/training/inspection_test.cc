// Looking at a running step: taps, measurements, the diagnosis of an overflow, the precision profile.
#include <algorithm>

#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

const Shape kImage = {2, 6, 6};

/// A ConvNorm at O2 with f16.
struct LowTraining {
  explicit LowTraining(ModelOptions options) {
    SetSeed(7);
    network = std::make_unique<ConvNorm>();
    optimizer = std::make_unique<nn::Momentum>(network->TrainableParams(), nn::MomentumOptions{.learning_rate = 0.05});
    options.amp_level = "O2";
    model = std::make_unique<Model>(*network, loss, *optimizer, std::move(options));
  }
  std::unique_ptr<ConvNorm> network;
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  std::unique_ptr<nn::Momentum> optimizer;
  std::unique_ptr<Model> model;
};

class TappedNetwork : public nn::Cell {
 public:
  MPC_CELL(TappedNetwork, fc)
  Tensor Construct(Tensor x) { return Tap("logits", fc(Tap("features", flatten(x)))); }

 private:
  nn::Dense fc{2 * 6 * 6, 3};
};

class TapReader : public Callback {
 public:
  void OnStepEnd(RunContext& context) override {
    logits = context.Tap("logits");
    features = context.Tap("features");
    nothing = context.Tap("nothing");
    batch = context.batch() == nullptr ? 0 : context.batch()->size();
  }
  Tensor logits, features, nothing;
  std::size_t batch = 0;
};

TEST(Tap, ShowsValuesFromInsideTheDifferentiatedNetwork) {
  for (const char* level : {"O0", "O2"}) {
    TappedNetwork network;
    nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
    nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 0.0});
    Model model(network, loss, optimizer, {.amp_level = level});
    TapReader reader;
    const data::Row batch = MakeBatch(kImage, 8, 0);
    MPC_ASSERT_OK(model.Train(1, Batches({batch}), {reader}));
    ASSERT_TRUE(reader.logits.defined());
    EXPECT_EQ(reader.logits.shape(), (Shape{8, 3}));
    EXPECT_EQ(reader.logits.dtype(), DType::kF32) << "a low value is read back exactly";
    EXPECT_FALSE(reader.nothing.defined());
    EXPECT_EQ(reader.batch, 2u);
    // The learning rate is 0: predicting computes the same logits.
    const absl::StatusOr<Tensor> predicted = model.Predict(batch[0]);
    MPC_ASSERT_OK(predicted.status());
    EXPECT_EQ(predicted->ToFloats(), reader.logits.ToFloats()) << level;
    EXPECT_EQ(reader.features.shape(), (Shape{8, 72}));
  }
}

TEST(Tap, ReturnsConcreteTensorsAsTheyAre) {
  const Tensor x = Values({3}, 1);
  EXPECT_EQ(Tap("x", x).ToFloats(), x.ToFloats());
}

class PrintingNetwork : public nn::Cell {
 public:
  MPC_CELL(PrintingNetwork)
  Tensor Construct(Tensor x) { return ops::Print(x * 2.0, "doubled: "); }
};

TEST(Print, PrintsAfterEachRunAndAtOnceWhereConcrete) {
  PrintingNetwork network;
  ::testing::internal::CaptureStdout();
  const Tensor y = network(Tensor::From(std::vector<float>{1, 2}, {2}));
  MPC_ASSERT_OK(y.status());
  ops::Print(Tensor::From(std::vector<float>{7}, {1}), "now: ");
  const std::string printed = ::testing::internal::GetCapturedStdout();
  EXPECT_NE(printed.find("doubled: "), std::string::npos) << printed;
  EXPECT_NE(printed.find('4'), std::string::npos) << printed;
  EXPECT_LT(printed.find("doubled: "), printed.find("now: ")) << printed;
}

TEST(Measure, NamesEveryValueAndChangesNothing) {
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  LowTraining training({.loss_scale_manager = dynamic});
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kImage, 2)));
  const Snapshot before = StateOf(*training.model);
  const auto values = training.model->Measure(MakeBatch(kImage, 8, 1));
  MPC_ASSERT_OK(values.status());
  EXPECT_EQ(Differences(before, StateOf(*training.model)), std::vector<std::string>{});
  const auto holds = [&](const std::string& operation, bool backward, DType dtype) {
    return std::any_of(values->begin(), values->end(), [&](const ValueStatistics& value) {
      return value.operation == operation && value.backward == backward && value.dtype == dtype;
    });
  };
  EXPECT_TRUE(holds("conv2d", false, DType::kF16));
  EXPECT_TRUE(holds("conv2d_grad_weight", true, DType::kF16));
  EXPECT_TRUE(holds("softmax_cross_entropy", false, DType::kF32));
  EXPECT_TRUE(holds("parameter", false, DType::kF32));
  for (const ValueStatistics& value : *values) {
    EXPECT_EQ(value.not_finite(), 0) << value.Describe();
    EXPECT_GT(value.count(), 0) << value.Describe();
  }
  // Computed in f32, nothing of the step is low.
  const auto full = training.model->Measure(MakeBatch(kImage, 8, 1), {.full_precision = true});
  MPC_ASSERT_OK(full.status());
  for (const ValueStatistics& value : *full) EXPECT_EQ(value.dtype, DType::kF32) << value.Describe();
}

TEST(DiagnoseOverflow, NamesTheInputThatIsNotFinite) {
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  LowTraining training({.loss_scale_manager = dynamic, .diagnose_overflow = true});
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kImage, 2)));
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(training.model->Train(1, Batches({WithBadValue(MakeBatch(kImage, 8, 3), kInfinity)})));
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("first value that is not finite at loss scale 256: input"), std::string::npos) << text;
  EXPECT_NE(text.find(": 1 of its "), std::string::npos) << text;
  EXPECT_NE(text.find("computed and not finite: forward pass: "), std::string::npos) << text;
  EXPECT_EQ(training.model->loss_scale(), 128) << "the replay moves no state";
}

TEST(DiagnoseOverflow, NamesTheBackwardOperationThatAHugeScaleOverflows) {
  const FixedLossScaleManager fixed({.loss_scale = 0x1p40});
  LowTraining training({.loss_scale_manager = fixed, .max_consecutive_skips = 2});
  ::testing::internal::CaptureStderr();
  const absl::Status status = training.model->Train(1, GoodBatches(kImage, 4));
  ::testing::internal::GetCapturedStderr();
  ASSERT_FALSE(status.ok());
  const std::string text(status.message());
  EXPECT_NE(text.find("first value that is not finite at loss scale 1099511627776: backward pass: "), std::string::npos)
      << text;
  EXPECT_NE(text.find("largest finite magnitude before it"), std::string::npos) << text;
}

TEST(PrecisionProfiler, GathersActivationsAndGradientsWithoutChangingTraining) {
  const DynamicLossScaleManager dynamic({.init_loss_scale = 256});
  LowTraining plain({.loss_scale_manager = dynamic}), profiled({.loss_scale_manager = dynamic});
  MPC_ASSERT_OK(plain.model->Train(1, GoodBatches(kImage, 4)));
  PrecisionProfiler profiler(*profiled.model, {.every = 2});
  MPC_ASSERT_OK(profiled.model->Train(1, GoodBatches(kImage, 4), {profiler}));
  EXPECT_EQ(Differences(StateOf(*plain.model), StateOf(*profiled.model)), std::vector<std::string>{});
  const auto& rows = profiler.profile().rows();
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const auto& row) { return row.backward; }));
  EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [](const auto& row) { return !row.backward; }));
  EXPECT_NE(profiler.profile().Table().find("gradients"), std::string::npos);
}

}  // namespace
}  // namespace mpc::testing
