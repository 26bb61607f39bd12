// Training steps as Cells: the documentation's own step, by hand and through Model.
#include "frontend/nn/train_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "models/lenet5.h"
#include "tests/training/probe.h"

namespace mpc {
namespace {

using testing::Batches;
using testing::Count;
using testing::GoodBatches;
using ::testing::HasSubstr;
using testing::MakeBatch;
using testing::ParametersOf;
using testing::TwoLayers;
using testing::Values;

/// MindSpore's documentation: divides the gradients by a loss scale that the optimizer does not know.
class CustomTrainOneStepCell : public nn::TrainOneStepCell {
 public:
  MPC_CELL(CustomTrainOneStepCell)
  CustomTrainOneStepCell(nn::WithLossCell& network, nn::Optimizer& optimizer, double sens = 1.0)
      : TrainOneStepCell(network, optimizer, sens), reciprocal_sens_(Tensor::Scalar(static_cast<float>(1 / sens))) {}

  Tensor Construct(Tensor data, Tensor label) {
    Tensor loss = network(data, label);
    const Tensor cotangent = ops::Fill(loss.dtype(), loss.shape(), sens);
    // The seed equals the loss scale.
    std::vector<Tensor> grads = grad(data, label, cotangent);
    grads = ScaleGradients(grads);
    grads = grad_reducer(grads);
    loss = ops::Depend(loss, optimizer(grads));
    return loss;
  }

 private:
  std::vector<Tensor> ScaleGradients(const std::vector<Tensor>& gradients) const {
    return ops::Map([&](const Tensor& gradient) { return gradient * ops::Cast(reciprocal_sens_, gradient.dtype()); },
                    gradients);
  }

  Tensor reciprocal_sens_;
};

/// LeNet-5 with loss and AdamWeightDecay inside the documentation's step, from seed 7.
struct Documentation {
  static models::LeNet5 Seeded() {
    SetSeed(7);
    return models::LeNet5();
  }
  models::LeNet5 network = Seeded();
  nn::SoftmaxCrossEntropyWithLogits loss{{.reduction = "mean"}};
  nn::AdamWeightDecay optimizer{network.TrainableParams(), {.learning_rate = 0.01}};
  nn::WithLossCell net_with_loss{network, loss};
  CustomTrainOneStepCell net_with_train{net_with_loss, optimizer, 1024.0};
};

data::Dataset Images() {
  std::vector<data::Row> batches;
  for (std::int64_t i = 0; i < 3; ++i) batches.push_back(MakeBatch({1, 32, 32}, 4, i, 10));
  return Batches(batches);
}

TEST(CustomTrainOneStepCell, ByHandAndThroughModelAreBitEqual) {
  Documentation by_hand;
  std::vector<float> losses;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const data::NamedRow& d : Images().CreateDictIterator()) {
      const Tensor result = by_hand.net_with_train(d["data"], d["label"]);
      MPC_ASSERT_OK(result.status());
      losses.push_back(result.Item<float>());
    }
  }
  Documentation by_model;
  Model model(by_model.net_with_train);
  testing::LossRecorder recorder;
  MPC_ASSERT_OK(model.Train(2, Images(), {recorder}));
  EXPECT_EQ(recorder.losses, losses);
  EXPECT_LT(losses.back(), losses.front());
  EXPECT_EQ(ParametersOf(by_hand.network), ParametersOf(by_model.network));
  EXPECT_EQ(*by_hand.optimizer.step(), 6);
  EXPECT_EQ(*by_model.optimizer.step(), 6);
}

TEST(CustomTrainOneStepCell, IsOneForwardPass) {
  for (const char* level : {"O0", "O2", "O3"}) {
    Documentation steps;
    Model model(steps.net_with_train, {.amp_level = level});
    MPC_ASSERT_OK(model.Train(1, Images()));
    const std::string ir = model.compiled().front()->final_ir.Print();
    EXPECT_EQ(Count(ir, "mpc.conv2d "), 2) << level << ir;
    EXPECT_EQ(Count(ir, "mpc.softmax_cross_entropy "), 1) << level;
  }
}

TEST(CustomTrainOneStepCell, ItsOwnSeedIsNotWrapped) {
  Documentation steps;
  Model model(steps.net_with_train, {.amp_level = "O2"});
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(model.Train(1, Images()));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("the step has a seed of its own"));
}

TEST(CustomTrainOneStepCell, AModelsScaleBesideItsOwnSeedIsAnError) {
  const auto error = [](ModelOptions options) {
    Documentation steps;
    return std::string(Model(steps.net_with_train, std::move(options)).Train(1, Images()).message());
  };
  const char* why =
      ", but CustomTrainOneStepCell cannot be scaled by it: its gradients have a seed of their own (sens)";
  EXPECT_THAT(error({.loss_scale_manager = FixedLossScaleManager()}),
              HasSubstr(absl::StrCat("Model: loss_scale_manager = static", why)));
  EXPECT_THAT(error({.amp_level = "O2", .loss_scale_manager = DynamicLossScaleManager()}),
              HasSubstr(absl::StrCat("Model: loss_scale_manager = dynamic", why)));
  EXPECT_THAT(error({.amp = {.level = "O2", .loss_scale = 128, .verbosity = 0}}),
              HasSubstr(absl::StrCat("Model: amp.loss_scale = 128", why)));
  EXPECT_EQ(error({.amp_level = "O2", .loss_scale_manager = nullptr}), "");
}

TEST(CustomTrainOneStepCell, ItsOwnSeedHasNoLossScale) {
  Documentation steps;
  Model model(steps.net_with_train, {.amp_level = "O2"});
  MPC_ASSERT_OK(model.Train(1, Images()));
  EXPECT_EQ(model.loss_scale(), 1);
  EXPECT_EQ(model.loss_scale(0), 1);
}

TEST(CustomTrainOneStepCell, ANormThatItDoesNotRecordIsAnError) {
  Documentation steps;
  Model model(steps.net_with_train, {.record_gradient_norm = true});
  EXPECT_THAT(std::string(model.Train(1, Images()).message()),
              HasSubstr("Model: record_gradient_norm, but CustomTrainOneStepCell does not record it"));
  testing::Training<TwoLayers> parts({"O0", {}});
  nn::WithLossCell with_loss(*parts.network, parts.loss);
  nn::TrainOneStepCell plain(with_loss, *parts.optimizer);
  Model records(plain, {.record_gradient_norm = true, .record_learning_rate = true});
  MPC_EXPECT_OK(records.Train(1, GoodBatches({6}, 1)));
}

TEST(TrainOneStepWithLossScaleCell, AModelsManagerBesideItsOwnIsAnError) {
  testing::Training<TwoLayers> parts({"O0", {}});
  nn::WithLossCell with_loss(*parts.network, parts.loss);
  nn::TrainOneStepWithLossScaleCell step(with_loss, *parts.optimizer, DynamicLossScaleManager());
  const Model model(step, {.loss_scale_manager = FixedLossScaleManager()});
  EXPECT_EQ(
      model.status().message(),
      "Model: loss_scale_manager = static, but TrainOneStepWithLossScaleCell has a manager of its own; leave one of "
      "them out");
  Model alone(step, {.amp_level = "O2", .loss_scale_manager = nullptr});
  MPC_EXPECT_OK(alone.Train(1, GoodBatches({6}, 1)));
}

TEST(TrainingStep, AScaleThatItsOptimizerDoesNotDivideIsAnError) {
  testing::Training<TwoLayers> parts({"O0", {}}, nullptr, {.loss_scale = 512});
  nn::WithLossCell with_loss(*parts.network, parts.loss);
  nn::TrainOneStepCell step(with_loss, *parts.optimizer);
  Model model(step, {.loss_scale_manager = FixedLossScaleManager({.loss_scale = 1024, .drop_overflow_update = false})});
  EXPECT_THAT(std::string(model.Train(1, GoodBatches({6}, 1)).message()),
              HasSubstr("Momentum has loss_scale = 512, but the scale that it has to divide is 1024"));
  // With sens the step scales and the optimizer divides.
  nn::TrainOneStepCell fits(with_loss, *parts.optimizer, 512);
  MPC_EXPECT_OK(Model(fits).Train(1, GoodBatches({6}, 1)));
  nn::TrainOneStepCell differs(with_loss, *parts.optimizer, 256);
  EXPECT_THAT(std::string(Model(differs).Train(1, GoodBatches({6}, 1)).message()),
              HasSubstr("its loss_scale = 512, and its seed is another number"));
}

TEST(CustomTrainOneStepCell, PowersOfTwoScaleExactly) {
  Documentation scaled;
  Model model(scaled.net_with_train);
  MPC_ASSERT_OK(model.Train(1, Images()));
  Documentation plain;
  Model control(plain.network, plain.loss, plain.optimizer);
  MPC_ASSERT_OK(control.Train(1, Images()));
  EXPECT_EQ(ParametersOf(scaled.network), ParametersOf(plain.network));
}

TEST(CustomTrainOneStepCell, PredictRunsTheNetworkInside) {
  Documentation steps;
  Model model(steps.net_with_train);
  MPC_ASSERT_OK(model.Train(1, Images()));
  const testing::Snapshot before = testing::StateOf(model);
  absl::StatusOr<Tensor> logits = model.Predict(Values({2, 1, 32, 32}));
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(logits->shape(), Shape({2, 10}));
  EXPECT_EQ(testing::StateOf(model), before);
  EXPECT_TRUE(model.State("optimizer.conv1.weight.moment1").defined());
}

TEST(CustomTrainOneStepCell, BatchNormStatisticsMoveOnceAStep) {
  // The two steps have different operations behind a gradient: fusion would group its sums differently.
  ContextOptions unfused;
  unfused.fusion = false;
  MPC_ASSERT_OK(SetContext(unfused));
  const auto train = [](bool custom) {
    testing::Training<testing::ConvNorm> parts({"O0", {}});
    nn::WithLossCell with_loss(*parts.network, parts.loss);
    CustomTrainOneStepCell own(with_loss, *parts.optimizer);
    nn::TrainOneStepCell plain(with_loss, *parts.optimizer);
    Model model = custom ? Model(own) : Model(plain);
    MPC_EXPECT_OK(model.Train(1, GoodBatches({2, 6, 6}, 2)));
    return parts.network->norm.moving_mean.Value()->ToFloats();
  };
  EXPECT_EQ(train(true), train(false));
  MPC_ASSERT_OK(SetContext({}));
}

/// Uses the plain call's loss before it asks for the gradient; with `own_seed` the gradient depends on it.
class ReadsLossEarly : public nn::TrainOneStepCell {
 public:
  MPC_CELL(ReadsLossEarly)
  ReadsLossEarly(nn::WithLossCell& network, nn::Optimizer& optimizer, bool own_seed)
      : TrainOneStepCell(network, optimizer), own_seed_(own_seed) {}
  Tensor Construct(Tensor data, Tensor label) {
    const Tensor loss = network(data, label);
    const Tensor doubled = loss * 2.0 + 1.0;
    const Tensor seed = own_seed_ ? stop_gradient(doubled) : ops::FullLike(loss, 1.0);
    return ops::Depend(doubled, optimizer(grad(data, label, seed)));
  }

 private:
  bool own_seed_;
};

TEST(CustomTrainOneStepCell, LossMayBeReadBeforeTheGradient) {
  testing::Training<testing::ConvNorm> early({"O0", {}});
  nn::WithLossCell early_loss(*early.network, early.loss);
  ReadsLossEarly step(early_loss, *early.optimizer, /*own_seed=*/false);
  Model model(step);
  testing::LossRecorder doubled;
  MPC_ASSERT_OK(model.Train(1, GoodBatches({2, 6, 6}, 2), {doubled}));
  EXPECT_EQ(Count(model.compiled().front()->final_ir.Print(), "mpc.conv2d "), 1);

  testing::Training<testing::ConvNorm> plain({"O0", {}});
  testing::LossRecorder losses;
  MPC_ASSERT_OK(plain.model->Train(1, GoodBatches({2, 6, 6}, 2), {losses}));
  EXPECT_EQ(ParametersOf(*early.network), ParametersOf(*plain.network));
  for (std::size_t i = 0; i < losses.losses.size(); ++i) {
    EXPECT_EQ(doubled.losses[i], losses.losses[i] * 2.0f + 1.0f);
  }
}

TEST(CustomTrainOneStepCell, SeedMayDependOnTheLoss) {
  testing::Training<TwoLayers> parts({"O0", {}});
  nn::WithLossCell with_loss(*parts.network, parts.loss);
  ReadsLossEarly step(with_loss, *parts.optimizer, /*own_seed=*/true);
  Model model(step);
  MPC_EXPECT_OK(model.Train(1, GoodBatches({6}, 2)));
}

TEST(WithLossCell, IsTheLossOfTheNetworksOutput) {
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::WithLossCell with_loss(network, loss);
  const data::Row batch = MakeBatch({6}, 4, 0);
  const Tensor direct = softmax_cross_entropy(network(batch[0]), batch[1]);
  EXPECT_NEAR(with_loss(batch[0], batch[1]).Item<float>(), direct.Item<float>(), 1e-6);
  EXPECT_EQ(with_loss.ParametersAndNames()[0].first, "fc1.weight") << "it adds nothing to the paths";
  EXPECT_THAT(std::string(with_loss(batch[0]).status().message()), HasSubstr("WithLossCell takes"));
}

TEST(TrainingStep, ADirectCallInInferenceModeIsAnError) {
  testing::Training<testing::ConvNorm> parts({"O0", {}});
  nn::WithLossCell with_loss(*parts.network, parts.loss);
  nn::TrainOneStepCell step(with_loss, *parts.optimizer);
  const data::Row batch = MakeBatch({2, 6, 6}, 8, 0);
  EXPECT_EQ(step(batch[0], batch[1]).status().message(),
            "TrainOneStepCell trains, but is in inference mode with all of its Cells, and 'convnorm/norm' asks for its "
            "mode; call SetTrain() on the step first, then SetTrain(false) on Cells that are to stay in inference");
  step.SetTrain();
  MPC_ASSERT_OK(step(batch[0], batch[1]).status());
  EXPECT_NE(parts.network->norm.moving_mean.Value()->ToFloats()[0], 0.0f);
  // A part may stay in inference.
  parts.network->norm.SetTrain(false);
  const std::vector<float> mean = parts.network->norm.moving_mean.Value()->ToFloats();
  MPC_ASSERT_OK(step(batch[0], batch[1]).status());
  EXPECT_EQ(parts.network->norm.moving_mean.Value()->ToFloats(), mean);
  // Nothing asks for its mode here.
  testing::Training<TwoLayers> plain({"O0", {}});
  nn::WithLossCell plain_loss(*plain.network, plain.loss);
  nn::TrainOneStepCell plain_step(plain_loss, *plain.optimizer);
  const data::Row rows = MakeBatch({6}, 8, 0);
  MPC_EXPECT_OK(plain_step(rows[0], rows[1]).status());
}

TEST(TrainOneStepCell, EqualsTheModelsOwnStep) {
  const auto train = [](bool by_hand) {
    testing::Training<TwoLayers> parts({"O0", {}});
    nn::WithLossCell with_loss(*parts.network, parts.loss);
    nn::TrainOneStepCell step(with_loss, *parts.optimizer);
    step.SetTrain();
    for (std::int64_t i = 0; i < 3; ++i) {
      const data::Row batch = MakeBatch({6}, 8, i);
      if (by_hand) {
        MPC_EXPECT_OK(step(batch[0], batch[1]).status());
      } else {
        MPC_EXPECT_OK(parts.model->Train(1, Batches({batch})));
      }
    }
    return ParametersOf(*parts.network);
  };
  EXPECT_EQ(train(true), train(false));
}

TEST(TrainOneStepCell, SensScalesAndNothingDivides) {
  testing::Probe network;
  testing::SumLoss loss;
  nn::WithLossCell with_loss(network, loss);
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  nn::TrainOneStepCell step(with_loss, optimizer, 3.0);
  const Tensor result = step(Tensor::From({2.0f}, {1}), Tensor::From({0.5f}, {1}));
  MPC_ASSERT_OK(result.status());
  EXPECT_EQ(result.Item<float>(), 0.5f) << "the loss is not scaled";
  EXPECT_EQ(network.weight.Value()->Item<float>(), -6.0f);
}

/// The gradient for a cotangent of the user's own.
class VectorSeed : public nn::TrainOneStepCell {
 public:
  MPC_CELL(VectorSeed)
  VectorSeed(testing::Probe& network, nn::Optimizer& optimizer) : TrainOneStepCell(network, optimizer) {}
  Tensor Construct(Tensor x, Tensor seed) {
    const Tensor losses = network(x);
    return ops::Depend(losses, optimizer(grad(x, seed)));
  }
};

TEST(TrainOneStepCell, ALossMayHaveSeveralElements) {
  testing::Probe network(3);
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  VectorSeed step(network, optimizer);
  const Tensor losses = step(Tensor::From({1.0f, 2.0f, 3.0f}, {3}), Tensor::From({1.0f, 0.0f, -2.0f}, {3}));
  MPC_ASSERT_OK(losses.status());
  EXPECT_EQ(losses.shape(), Shape({3}));
  EXPECT_THAT(network.weight.Value()->ToFloats(), ::testing::ElementsAre(-1, 0, 6));
}

TEST(TrainOneStepWithLossScaleCell, ScalesUnscalesAndSkips) {
  testing::Probe network;
  testing::SumLoss loss;
  nn::WithLossCell with_loss(network, loss);
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  nn::TrainOneStepWithLossScaleCell step(with_loss, optimizer, DynamicLossScaleManager({.init_loss_scale = 1024}));
  const auto run = [&](float gradient) {
    MPC_EXPECT_OK(step(Tensor::From({gradient}, {1}), Tensor::From({0.0f}, {1})).status());
    return network.weight.Value()->Item<float>();
  };
  EXPECT_EQ(run(2.0f), -2.0f);
  EXPECT_EQ(run(testing::kInfinity), -2.0f);
  EXPECT_EQ(step.scaler().scale(), 512);
  EXPECT_EQ(step.scaler().skipped_steps(), 1);
  EXPECT_EQ(run(1.0f), -3.0f);

  // Through Model it is the same state that goes on.
  Model model(step);
  EXPECT_EQ(model.loss_scale(), 512);
  MPC_ASSERT_OK(model.Train(1, Batches({{Tensor::From({testing::kNan}, {1}), Tensor::From({0.0f}, {1})}})));
  EXPECT_EQ(model.skipped_steps(), 2);
  EXPECT_EQ(model.loss_scale(), 256);
  EXPECT_TRUE(model.State("scaler.scale").defined());
}

TEST(TrainOneStepCell, ErrorsOfTheOptimizerReachTheCall) {
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::WithLossCell with_loss(network, loss);
  nn::SGD empty({});
  nn::TrainOneStepCell step(with_loss, empty);
  const data::Row batch = MakeBatch({6}, 4, 0);
  EXPECT_THAT(std::string(step(batch[0], batch[1]).status().message()), HasSubstr("got no parameters"));
  Model model(step);
  EXPECT_THAT(std::string(model.Train(1, Batches({batch})).message()), HasSubstr("got no parameters"));
}

}  // namespace
}  // namespace mpc
