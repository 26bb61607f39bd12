// The programs of MindSpore's mixed-precision documentation, in C++: they compile, train and learn.
#include <gmock/gmock.h>

#include <sstream>

#include "models/lenet5.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

/// Images in which the label can be seen, as batches of 16 one-hot rows.
data::Dataset CreateDataset() {
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 64; ++i) {
    const std::int64_t label = i % 10;
    std::vector<float> image(32 * 32);
    for (std::size_t pixel = 0; pixel < image.size(); ++pixel) {
      image[pixel] = 0.3f * Value(static_cast<std::int64_t>(pixel), i) +
                     (static_cast<std::int64_t>(pixel % 32) / 3 == label ? 2.0f : 0.0f);
    }
    std::vector<float> target(10, 0.0f);
    target[static_cast<std::size_t>(label)] = 1.0f;
    rows.push_back({Tensor::From(image, {1, 32, 32}), Tensor::From(target, {10})});
  }
  return data::GeneratorDataset(rows, {"data", "label"}).Batch(16, /*drop_remainder=*/true);
}

void ExpectLearns(Model& model, std::int64_t epochs = 6) {
  LossRecorder recorder;
  MPC_ASSERT_OK(model.Train(epochs, CreateDataset(), {recorder}));
  EXPECT_NEAR(recorder.losses.front(), 2.3, 0.1);
  EXPECT_LT(recorder.losses.back(), recorder.losses.front());
  EXPECT_TRUE(std::isfinite(recorder.losses.back()));
}

class Documentation : public ::testing::Test {
 protected:
  Documentation() { SetSeed(1); }
  static models::LeNet5 Seeded() {
    SetSeed(1);
    return models::LeNet5(10);
  }

  models::LeNet5 network_ = Seeded();
  nn::SoftmaxCrossEntropyWithLogits net_loss_{{.reduction = "mean"}};
};

TEST_F(Documentation, AutomaticMixedPrecisionAtO3) {
  nn::Momentum net_opt(network_.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model(network_, net_loss_, net_opt,
              {.metrics = {{"Accuracy", Accuracy()}}, .amp_level = "O3", .loss_scale_manager = nullptr});
  ExpectLearns(model);
  absl::StatusOr<std::map<std::string, double>> metrics = model.Eval(CreateDataset());
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->count("Accuracy"), 1u);
}

/// One convolution low by hand, a cast, and the rest by level.
class ManualLeNet5 : public nn::Cell {
 public:
  MPC_CELL(ManualLeNet5, conv1, conv2, fc1, fc2, fc3)
  Tensor Construct(Tensor x) {
    x = conv1(x);
    x = ops::Cast(x, DType::kF32);
    x = relu(x);
    x = max_pool2d(x);
    x = max_pool2d(relu(conv2(x)));
    x = flatten(x);
    x = relu(fc1(x));
    x = relu(fc2(x));
    return fc3(x);
  }
  nn::Conv2d conv1{1, 6, 5, {.pad_mode = "valid"}};
  nn::Conv2d conv2{6, 16, 5, {.pad_mode = "valid"}};
  nn::Dense fc1{16 * 5 * 5, 120, {.weight_init = Normal(0.02)}};
  nn::Dense fc2{120, 84, {.weight_init = Normal(0.02)}};
  nn::Dense fc3{84, 10, {.weight_init = Normal(0.02)}};
};

TEST_F(Documentation, ManualMixedPrecision) {
  ManualLeNet5 network;
  network.conv1.ToFloat(DType::kF16);
  nn::Momentum net_opt(network.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model(network, net_loss_, net_opt, {.amp_level = "O2", .loss_scale_manager = nullptr});
  ExpectLearns(model);

  nn::WithLossCell net_with_loss(network, net_loss_);
  nn::TrainOneStepCell net_with_train(net_with_loss, net_opt);
  net_with_train.SetTrain();
  for (const data::NamedRow& d : CreateDataset().CreateDictIterator()) {
    MPC_EXPECT_OK(net_with_train(d["data"], d["label"]).status());
  }
}

TEST_F(Documentation, FixedLossScaleDropsOverflowingUpdates) {
  nn::Momentum net_opt(network_.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model(network_, net_loss_, net_opt,
              {.metrics = {"accuracy"}, .amp_level = "O0", .loss_scale_manager = FixedLossScaleManager()});
  ExpectLearns(model);
  EXPECT_EQ(model.loss_scale(), 128);
}

TEST_F(Documentation, FixedLossScaleUpdatesInAnyCase) {
  const double loss_scale = 1024.0;
  nn::Momentum net_opt(network_.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9, .loss_scale = loss_scale});
  Model model(network_, net_loss_, net_opt,
              {.amp_level = "O0",
               .loss_scale_manager = FixedLossScaleManager({.loss_scale = loss_scale, .drop_overflow_update = false})});
  std::ostringstream output;
  MPC_ASSERT_OK(model.Train(2, CreateDataset(), {LossMonitor({.stream = &output})}));
  EXPECT_THAT(output.str(), MatchesRegex("epoch: 1 step: 4, loss is 2.[0-9]+\nepoch: 2 step: 4, loss is 2.[0-9]+\n"));
}

TEST_F(Documentation, DynamicLossScaleWarnsOfSwappedArguments) {
  ::testing::internal::CaptureStderr();
  const DynamicLossScaleManager manager({.init_loss_scale = 4, .scale_factor = 3000});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("were the arguments mixed up?"));
  nn::Momentum net_opt(network_.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model(
      network_, net_loss_, net_opt,
      {.amp_level = "O0", .loss_scale_manager = DynamicLossScaleManager({.scale_factor = 4, .scale_window = 3000})});
  ExpectLearns(model);
  EXPECT_EQ(model.loss_scale(), 0x1p24);
}

}  // namespace
}  // namespace mpc::testing
