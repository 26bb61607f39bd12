// The programs of MindSpore's mixed-precision documentation, in C++: they compile, train and learn.
#include <gmock/gmock.h>

#include <sstream>

#include "models/lenet5.h"
#include "tests/training/documentation_data.h"

namespace mpc::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

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

TEST_F(Documentation, AMP_38_AutomaticMixedPrecisionAtO3) {
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

TEST_F(Documentation, AMP_38_ManualMixedPrecision) {
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

TEST_F(Documentation, AMP_38_FixedLossScaleDropsOverflowingUpdates) {
  nn::Momentum net_opt(network_.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  Model model(network_, net_loss_, net_opt,
              {.metrics = {"accuracy"}, .amp_level = "O0", .loss_scale_manager = FixedLossScaleManager()});
  ExpectLearns(model);
  EXPECT_EQ(model.loss_scale(), 128);
}

TEST_F(Documentation, AMP_38_FixedLossScaleUpdatesInAnyCase) {
  const double loss_scale = 1024.0;
  nn::Momentum net_opt(network_.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9, .loss_scale = loss_scale});
  Model model(network_, net_loss_, net_opt,
              {.amp_level = "O0",
               .loss_scale_manager = FixedLossScaleManager({.loss_scale = loss_scale, .drop_overflow_update = false})});
  std::ostringstream output;
  MPC_ASSERT_OK(model.Train(2, CreateDataset(), {LossMonitor({.stream = &output})}));
  EXPECT_THAT(output.str(), MatchesRegex("epoch: 1 step: 4, loss is 2.[0-9]+\nepoch: 2 step: 4, loss is 2.[0-9]+\n"));
}

TEST_F(Documentation, AMP_38_DynamicLossScaleWarnsOfSwappedArguments) {
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
