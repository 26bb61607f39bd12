// AMP-38: the documentation's programs that scale the loss in a training step of their own: MindSpore's custom training
// cell, Paddle's AmpScaler, apex.amp.
#include <gmock/gmock.h>

#include "models/lenet5.h"
#include "tests/training/documentation_data.h"

namespace mpc::testing {
namespace {

models::LeNet5 SeededLeNet5() {
  SetSeed(1);
  return models::LeNet5(10);
}

// ---- MindSpore: AdamWeightDecay has no loss_scale, so the step divides ----------------------------------------------

class CustomTrainOneStepCell : public nn::TrainOneStepCell {
 public:
  MPC_CELL(CustomTrainOneStepCell)
  CustomTrainOneStepCell(nn::WithLossCell& network, nn::Optimizer& optimizer, double sens = 1.0)
      : TrainOneStepCell(network, optimizer, sens), reciprocal_sense(Tensor::Scalar(static_cast<float>(1 / sens))) {}

  std::vector<Tensor> ScaleGrad(const std::vector<Tensor>& gradients) const {
    return ops::Map([&](const Tensor& gradient) { return gradient * ops::Cast(reciprocal_sense, gradient.dtype()); },
                    gradients);
  }

  Tensor Construct(const std::vector<Tensor>& inputs) {
    Tensor loss = network(inputs);
    const Tensor seed = ops::Fill(loss.dtype(), loss.shape(), sens);
    // calculate gradients, the seed will equal to the loss_scale
    std::vector<Tensor> grads = grad(inputs, seed);
    // gradients / loss_scale
    grads = ScaleGrad(grads);
    // reduce gradients in distributed scenarios
    grads = grad_reducer(grads);
    loss = ops::Depend(loss, optimizer(grads));
    return loss;
  }

  Tensor reciprocal_sense;
};

struct CustomTraining {
  models::LeNet5 network = SeededLeNet5();
  nn::SoftmaxCrossEntropyWithLogits net_loss{{.reduction = "mean"}};
  nn::AdamWeightDecay net_opt{network.TrainableParams(), {.learning_rate = 0.001}};
  nn::WithLossCell net_with_loss{network, net_loss};
  CustomTrainOneStepCell net_with_train{net_with_loss, net_opt, 1024.0};
};

TEST(DocumentationScalers, AMP_38_CustomTrainingCellByHand) {
  CustomTraining training;
  ExpectLearnsByHand(training.net_with_train);
}

TEST(DocumentationScalers, AMP_38_CustomTrainingCellThroughModel) {
  CustomTraining training;
  Model model(training.net_with_train);
  ExpectLearns(model);
}

// ---- Paddle: amp_guard, scale, backward, minimize -------------------------------------------------------------------

/// conv = model(data); loss = reduce_mean(conv).
class PaddleStep : public nn::TrainingStep {
 public:
  MPC_CELL(PaddleStep, model)
  Tensor Construct(Tensor data) {
    Tensor loss;
    Tensor scaled;
    {
      amp::AutoCast guard;
      const Tensor conv = model(data);
      loss = reduce_mean(conv);
      scaled = scaler.Scale(loss);
      ops::Backward(scaled, optimizer.parameters());
    }
    scaler.Minimize(optimizer, scaled);
    return loss;
  }

  nn::Conv2d model{3, 2, 3};
  nn::SGD optimizer{model.TrainableParams(), {.learning_rate = 0.01}};
  amp::AmpScaler scaler{{.init_loss_scaling = 1024}};
};

TEST(DocumentationScalers, AMP_38_PaddlesAutoCastAndMinimize) {
  SetSeed(1);
  PaddleStep step;
  const Tensor data = Values({10, 3, 32, 32});
  float last = 0;
  for (int i = 0; i < 5; ++i) {
    const Tensor loss = step(data);
    MPC_ASSERT_OK(loss.status());
    if (i > 0) {
      EXPECT_LT(loss.Item<float>(), last);
    }
    last = loss.Item<float>();
  }
  EXPECT_EQ(*step.optimizer.step(), 5);
  EXPECT_EQ(step.scaler.StateDict().at("incr_count"), 5);
  EXPECT_EQ(step.scaler.StateDict().at("scale"), 1024);
}

/// The same way of scaling on LeNet-5.
class PaddleLeNet5Step : public nn::TrainingStep {
 public:
  MPC_CELL(PaddleLeNet5Step, network, net_loss)
  Tensor Construct(Tensor data, Tensor label) {
    Tensor loss;
    {
      amp::AutoCast guard({.level = "O1"});
      loss = net_loss(network(data), label);
    }
    const Tensor scaled = scaler.Scale(loss);
    scaler.Minimize(optimizer, ops::Backward(scaled, optimizer.parameters()));
    return loss;
  }
  nn::CellFunction predicted_network() const override { return const_cast<models::LeNet5&>(network); }

  models::LeNet5 network = SeededLeNet5();
  nn::SoftmaxCrossEntropyWithLogits net_loss{{.reduction = "mean"}};
  nn::Momentum optimizer{network.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9}};
  amp::AmpScaler scaler;
};

TEST(DocumentationScalers, AMP_38_PaddleByHand) {
  PaddleLeNet5Step step;
  ExpectLearnsByHand(step);
}

TEST(DocumentationScalers, AMP_38_PaddleThroughModel) {
  PaddleLeNet5Step step;
  Model model(step);
  ExpectLearns(model);
  EXPECT_EQ(model.loss_scale(), 32768);
  absl::StatusOr<Tensor> logits = model.Predict(Values({2, 1, 32, 32}));
  MPC_ASSERT_OK(logits.status());
  EXPECT_EQ(logits->shape(), Shape({2, 10}));
}

// ---- apex: initialize, scale_loss, backward, step -------------------------------------------------------------------

class ApexStep : public nn::TrainingStep {
 public:
  MPC_CELL(ApexStep, model, criterion)
  explicit ApexStep(const amp::Options& options) : initialized(amp::Initialize(model, optimizer, options)) {}
  Tensor Construct(Tensor data, Tensor label) {
    const Tensor loss = criterion(model(data), label);
    // with amp.scale_loss(loss, optimizer) as scaled_loss: scaled_loss.backward()
    const Tensor scaled_loss = amp::ScaleLoss(loss, optimizer);
    optimizer(ops::Backward(scaled_loss, optimizer.parameters()));
    return loss;
  }

  models::LeNet5 model = SeededLeNet5();
  nn::SoftmaxCrossEntropyWithLogits criterion{{.reduction = "mean"}};
  nn::SGD optimizer{model.TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9}};
  absl::Status initialized;
};

class ApexProgramAtLevel : public ::testing::TestWithParam<const char*> {};

TEST_P(ApexProgramAtLevel, AMP_38_ApexInitializeAndScaleLossByHand) {
  ApexStep step({.level = GetParam(), .verbosity = 0});
  MPC_ASSERT_OK(step.initialized);
  ExpectLearnsByHand(step);
}

TEST_P(ApexProgramAtLevel, AMP_38_ApexInitializeAndScaleLossThroughModel) {
  ApexStep step({.level = GetParam(), .verbosity = 0});
  MPC_ASSERT_OK(step.initialized);
  Model model(step);
  EXPECT_EQ(model.precision().level, GetParam());
  ExpectLearns(model);
}

INSTANTIATE_TEST_SUITE_P(Levels, ApexProgramAtLevel, ::testing::Values("O0", "O1", "O2", "O3"),
                         [](const auto& info) { return std::string(info.param); });

TEST(DocumentationScalers, AMP_38_ApexCheckpointWorkflow) {
  ApexStep step({.level = "O1", .verbosity = 0});
  Model model(step);
  MPC_ASSERT_OK(model.Train(1, CreateDataset()));
  const auto of_model = amp::StateDict(step.model);
  const auto of_amp = amp::StateDict();
  ASSERT_TRUE(of_model.ok() && of_amp.ok());

  ApexStep restored({.level = "O1", .verbosity = 0});
  for (const auto& [name, value] : *of_model) MPC_ASSERT_OK(restored.model.SetParameter(name, value));
  MPC_ASSERT_OK(amp::LoadStateDict(*of_amp));
  EXPECT_EQ(amp::StateDict()->at("loss_scaler0").at("unskipped"), 4);
  EXPECT_EQ(ParametersOf(restored.model), ParametersOf(step.model));
}

}  // namespace
}  // namespace mpc::testing
