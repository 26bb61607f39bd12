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
  const auto of_optimizer = amp::StateDict(step.optimizer);
  const auto of_amp = amp::StateDict();
  ASSERT_TRUE(of_model.ok() && of_optimizer.ok() && of_amp.ok());

  ApexStep restored({.level = "O1", .verbosity = 0});
  MPC_ASSERT_OK(amp::LoadStateDict(restored.model, *of_model));
  MPC_ASSERT_OK(amp::LoadStateDict(restored.optimizer, *of_optimizer));
  MPC_ASSERT_OK(amp::LoadStateDict(*of_amp));
  EXPECT_EQ(amp::StateDict()->at("loss_scaler0").at("unskipped"), 4);
  EXPECT_EQ(ParametersOf(restored.model), ParametersOf(step.model));
  // Velocity, step counter and scale go on too: the next epochs have the same bits.
  Model continued(restored);
  MPC_ASSERT_OK(continued.Train(1, CreateDataset()));
  MPC_ASSERT_OK(model.Train(1, CreateDataset()));
  EXPECT_EQ(ParametersOf(restored.model), ParametersOf(step.model));
}

TEST(DocumentationScalers, LoadStateDictListsWhatDoesNotFitAndLoadsNothing) {
  ApexStep step({.level = "O1", .verbosity = 0});
  auto state = *amp::StateDict(step.optimizer);
  state["optimizer.step"] = Tensor::Scalar<std::int32_t>(7);
  state["optimizer.what"] = Tensor::Scalar(1.0f);
  state["optimizer.fc1.bias.velocity"] = Tensor::Full({3}, 1.0);
  state.erase("optimizer.fc2.bias.velocity");
  const std::string error(amp::LoadStateDict(step.optimizer, state).message());
  for (const char* part :
       {"does not fit SGD", "'optimizer.fc2.bias.velocity' is missing", "'what' is unknown",
        "'optimizer.fc1.bias.velocity' is tensor<3xf32>, not tensor<120xf32>", "nothing was loaded"}) {
    EXPECT_THAT(error, ::testing::HasSubstr(part));
  }
  EXPECT_EQ(*step.optimizer.step(), 0);
  // What another step calls its second optimizer is the same state.
  const std::map<std::string, Tensor> first = *amp::StateDict(step.optimizer);
  std::map<std::string, Tensor> second;
  for (const auto& [name, value] : first) second["optimizer2" + name.substr(9)] = value;
  second["optimizer2.step"] = Tensor::Scalar<std::int32_t>(7);
  MPC_ASSERT_OK(amp::LoadStateDict(step.optimizer, second));
  EXPECT_EQ(*step.optimizer.step(), 7);
  EXPECT_FALSE(amp::LoadStateDict(step.model, {}).ok());
}

// ---- What the documents have beside their programs ------------------------------------------------------------------

/// A manager of one's own: any numbers of the state machine.
class SlowLossScaleManager : public LossScaleManager {
 public:
  LossScaleConfig config() const override {
    LossScaleConfig config;
    config.mode = LossScaleConfig::Mode::kDynamic;
    config.init = 8;
    config.growth = 4;
    config.growth_interval = 3;
    return config;
  }
};

TEST(DocumentationPrograms, AManagerOfOnesOwnScales) {
  models::LeNet5 network = SeededLeNet5();
  nn::SoftmaxCrossEntropyWithLogits net_loss({.reduction = "mean"});
  nn::Momentum net_opt(network.TrainableParams(), {.learning_rate = 0.01});
  Model model(network, net_loss, net_opt, {.loss_scale_manager = SlowLossScaleManager()});
  MPC_ASSERT_OK(model.Train(1, CreateDataset()));
  EXPECT_EQ(model.loss_scale(), 32) << "4 steps at interval 3";
}

// MindSpore's eval_network: what Eval measures of a step of one's own.
TEST(DocumentationPrograms, AStepOfOnesOwnIsEvaluatedByALoss) {
  PaddleLeNet5Step step;
  nn::SoftmaxCrossEntropyWithLogits net_loss({.reduction = "mean"});
  Model model(step, net_loss, {.metrics = {"accuracy", "loss"}});
  MPC_ASSERT_OK(model.Train(2, CreateDataset()));
  const auto metrics = model.Eval(CreateDataset());
  MPC_ASSERT_OK(metrics.status());
  Model control(step.network, net_loss, {.metrics = {"accuracy", "loss"}});
  const auto expected = control.Eval(CreateDataset());
  MPC_ASSERT_OK(expected.status());
  EXPECT_EQ(*metrics, *expected);

  Model without(step);
  EXPECT_THAT(std::string(without.Eval(CreateDataset()).status().message()),
              ::testing::HasSubstr("Eval needs a loss: Model(step, loss, options)"));
  PaddleStep predicts_nothing;
  EXPECT_THAT(std::string(Model(predicts_nothing, net_loss).status().message()),
              ::testing::HasSubstr("override predicted_network()"));
}

/// apex's default: losses without an id share the one scaler.
class TwoLossesOfOneScaler : public nn::TrainingStep {
 public:
  MPC_CELL(TwoLossesOfOneScaler, model)
  Tensor Construct(Tensor data, Tensor label) {
    const Tensor logits = model(data);
    const Tensor first = softmax_cross_entropy(logits, label, "mean");
    const Tensor second = reduce_mean(logits * logits);
    const auto& weights = optimizer.parameters();
    const std::vector<Tensor> of_first = ops::Backward(Scaled(first), weights);
    const std::vector<Tensor> of_second = ops::Backward(Scaled(second), weights);
    std::vector<Tensor> sums;
    for (std::size_t i = 0; i < weights.size(); ++i) sums.push_back(of_first[i] + of_second[i]);
    return ops::Depend(first + second, optimizer(sums));
  }
  Tensor Scaled(const Tensor& loss) { return apex ? amp::ScaleLoss(loss, optimizer) : loss; }

  models::LeNet5 model = SeededLeNet5();
  nn::SGD optimizer{model.TrainableParams(), {.learning_rate = 0.01}};
  bool apex = false;
};

TEST(DocumentationPrograms, SeveralLossesWithoutAnIdShareOneScaler) {
  TwoLossesOfOneScaler wrapped;
  Model by_model(wrapped, {.amp_level = "O2", .loss_scale_manager = FixedLossScaleManager({.loss_scale = 1024})});
  MPC_ASSERT_OK(by_model.Train(1, CreateDataset()));
  EXPECT_EQ(by_model.loss_scale(), 1024);
  TwoLossesOfOneScaler step;
  step.apex = true;
  MPC_ASSERT_OK(amp::Initialize(step.model, step.optimizer, {.level = "O2", .verbosity = 0}));
  Model by_step(step);
  MPC_ASSERT_OK(by_step.Train(1, CreateDataset()));
  EXPECT_EQ(amp::StateDict()->at("loss_scaler0").at("unskipped"), 4);
}

}  // namespace
}  // namespace mpc::testing
