// Cells, Parameters, optimizers and scalers that are replaced after a step was compiled with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "frontend/graph/compiled_step.h"
#include "frontend/graph/step_key.h"
#include "frontend/state/safetensors.h"
#include "tests/frontend/temporary_folder.h"
#include "tests/training/probe.h"

namespace mpc {
namespace {

using testing::Batches;
using ::testing::ElementsAre;
using testing::GoodBatches;
using testing::Probe;
using testing::SumLoss;
using testing::TwoLayers;
using testing::Values;

nn::Dense DenseOfOnes(std::int64_t in, std::int64_t out) {
  return nn::Dense(in, out, {.weight_init = Constant(1.0), .bias_init = Zeros()});
}

/// Counts how often it is traced.
class Layered : public nn::Cell {
 public:
  MPC_CELL(Layered, fc, drop)
  Tensor Construct(Tensor x) {
    ++traces;
    return act(drop(fc(x)));
  }
  nn::Dense fc = DenseOfOnes(4, 3);
  nn::Dropout drop{{.p = 0.0}};
  nn::LeakyReLU act{0.5};  ///< it needs no name
  int traces = 0;
};

const Tensor kRow = Tensor::From<float>({1, 2, 3, 4}, {1, 4});

data::Dataset OneRow(float value) { return Batches({{Tensor::From({value}, {1}), Tensor::From({0.0f}, {1})}}); }

float MovedWeight(const Probe& network) { return network.weight.Value()->Item<float>(); }

TEST(ReplacedCell, ADirectCallRunsTheNewOne) {
  Layered net;
  EXPECT_THAT(net(kRow).ToFloats(), ElementsAre(10, 10, 10));
  EXPECT_THAT(net(kRow).ToFloats(), ElementsAre(10, 10, 10));
  EXPECT_EQ(net.traces, 1) << "what stands still is compiled once";
  net.fc = DenseOfOnes(4, 2);
  for (int call = 0; call < 2; ++call) EXPECT_THAT(net(kRow).ToFloats(), ElementsAre(10, 10));
  EXPECT_EQ(net.traces, 2);
  net.fc = nn::Dense(4, 2, {.weight_init = Constant(-1.0), .bias_init = Zeros()});
  EXPECT_THAT(net(kRow).ToFloats(), ElementsAre(-5, -5)) << "of the same shape";
  net.act = nn::LeakyReLU(0.25);
  EXPECT_THAT(net(kRow).ToFloats(), ElementsAre(-2.5, -2.5)) << "a Cell without a name";
  net.SetTrain();
  EXPECT_THAT(net(kRow).ToFloats(), ElementsAre(-2.5, -2.5));
  net.drop = nn::Dropout({.p = 1.0 - 1e-7});
  net.SetTrain();
  EXPECT_THAT(net(kRow).ToFloats(), ElementsAre(0, 0));
}

TEST(ReplacedCell, AParameterIsOneToo) {
  Layered net;
  EXPECT_THAT(net(kRow).ToFloats(), ElementsAre(10, 10, 10));
  net.fc.weight = Parameter({3, 4}, Constant(2.0));
  EXPECT_THAT(net(kRow).ToFloats(), ElementsAre(20, 20, 20));
  EXPECT_TRUE(net.fc.weight.SetData(Tensor::Zeros({3, 4})).ok());
  EXPECT_THAT(net(kRow).ToFloats(), ElementsAre(0, 0, 0));
  EXPECT_EQ(net.traces, 2) << "a value is no part of a Program";
}

TEST(ReplacedCell, AModelPredictsWithTheNewOneAndGivesUpTheOldProgram) {
  Layered net, other;
  Model model(net), second(net);
  EXPECT_THAT(model.Predict(kRow)->ToFloats(), ElementsAre(10, 10, 10));
  EXPECT_THAT(second.Predict(kRow)->ToFloats(), ElementsAre(10, 10, 10));
  net.fc = DenseOfOnes(4, 2);
  for (int call = 0; call < 2; ++call) EXPECT_THAT(model.Predict(kRow)->ToFloats(), ElementsAre(10, 10));
  EXPECT_EQ(model.compiled().size(), 1u);
  EXPECT_THAT(second.Predict(kRow)->ToFloats(), ElementsAre(10, 10)) << "a Model of the same network";
  EXPECT_EQ(net.traces, 4);
  other.fc = nn::Dense(4, 1, {.weight_init = Constant(3.0), .bias_init = Zeros()});
  net = other;
  EXPECT_THAT(model.Predict(kRow)->ToFloats(), ElementsAre(30)) << "the whole network";
}

TEST(ReplacedCell, CopiedAndMovedCellsAreCellsOfTheirOwn) {
  std::vector<Layered> nets(1);
  EXPECT_THAT(nets[0](kRow).ToFloats(), ElementsAre(10, 10, 10));
  for (int i = 0; i < 3; ++i) nets.emplace_back();
  EXPECT_THAT(nets[0](kRow).ToFloats(), ElementsAre(10, 10, 10));
  Layered moved = std::move(nets[0]);
  EXPECT_THAT(moved(kRow).ToFloats(), ElementsAre(10, 10, 10));
  nn::SequentialCell list{std::move(moved), DenseOfOnes(3, 1)};
  EXPECT_THAT(list(kRow).ToFloats(), ElementsAre(30));
}

class Amplifier : public nn::Cell {
 public:
  MPC_CELL(Amplifier)
  Tensor Construct(Tensor x) { return x * gain; }
  double gain = 2;
};

TEST(ReplacedCell, ForgetProgramsTellsOfAPlainMember) {
  Amplifier gain;
  Model model(gain);
  const Tensor one = Tensor::From<float>({1}, {1});
  EXPECT_THAT(gain(one).ToFloats(), ElementsAre(2));
  EXPECT_THAT(model.Predict(one)->ToFloats(), ElementsAre(2));
  gain.gain = 3;
  EXPECT_THAT(gain(one).ToFloats(), ElementsAre(2)) << "a constant of the compiled step";
  gain.ForgetPrograms();
  EXPECT_THAT(gain(one).ToFloats(), ElementsAre(3));
  EXPECT_THAT(model.Predict(one)->ToFloats(), ElementsAre(3));
}

TEST(ReplacedCell, ALossIsTheNewOne) {
  Probe network;
  nn::MSELoss loss({.reduction = "sum"});
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  Model model(network, loss, optimizer, {.metrics = {"loss"}});
  const data::Dataset row = Batches({{Tensor::From({1.0f, 1.0f}, {2}), Tensor::From({1.0f, 1.0f}, {2})}});
  EXPECT_EQ(model.Eval(row)->at("loss"), 2.0);
  loss = nn::MSELoss({.reduction = "mean"});
  EXPECT_EQ(model.Eval(row)->at("loss"), 1.0);
}

TEST(ReplacedOptimizer, TrainsAndIsSavedInThePlaceOfTheOldOne) {
  testing::TemporaryFolder folder;
  const std::string path = folder / "run.safetensors";
  Probe network;
  SumLoss loss;
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  Model model(network, loss, optimizer);
  MPC_ASSERT_OK(model.Train(2, OneRow(1)));
  EXPECT_EQ(MovedWeight(network), -2.9f);
  optimizer = nn::Momentum(network.TrainableParams(), {.learning_rate = 0.5});
  MPC_ASSERT_OK(model.SaveCheckpoint(path));
  MPC_ASSERT_OK(model.Train(1, OneRow(1)));
  EXPECT_EQ(MovedWeight(network), -3.4f);
  EXPECT_EQ(*optimizer.step(), 1);
  MPC_ASSERT_OK(optimizer.SetLearningRate(0.25));
  MPC_ASSERT_OK(model.Train(1, OneRow(1)));
  EXPECT_EQ(*optimizer.step(), 2);
  EXPECT_EQ(model.compiled().size(), 1u);
  MPC_ASSERT_OK(model.SaveCheckpoint(path));
  Probe resumed;
  nn::Momentum loaded(resumed.TrainableParams(), {.learning_rate = 1.0});
  Model other(resumed, loss, loaded);
  MPC_ASSERT_OK(other.Train(1, OneRow(1)));
  MPC_ASSERT_OK(other.LoadCheckpoint(path, {.continue_run = false}).status());
  EXPECT_EQ(*loaded.step(), 2);
  EXPECT_EQ(*loaded.learning_rate(), 0.25);
  MPC_ASSERT_OK(other.Train(1, OneRow(1)));
  EXPECT_EQ(other.compiled().size(), 1u) << "loading replaces values only";
  MPC_ASSERT_OK(model.Train(1, OneRow(1)));
  EXPECT_EQ(MovedWeight(resumed), MovedWeight(network));
}

/// A step whose optimizer is known by tracing only.
class OwnStep : public nn::TrainingStep {
 public:
  MPC_CELL(OwnStep, network)
  explicit OwnStep(Probe& network) : network(network) {}
  Tensor Construct(Tensor x, Tensor label) {
    Tensor loss = reduce_sum(network(x)) + reduce_sum(label);
    scaler.Minimize(optimizer, scaler.Scale(loss));
    return loss;
  }
  Probe& network;
  nn::SGD optimizer{network.TrainableParams(), {.learning_rate = 1.0, .momentum = 0.5}};
  amp::AmpScaler scaler{{.init_loss_scaling = 8.0}};
};

TEST(ReplacedOptimizer, OfAStepOfOnesOwn) {
  testing::TemporaryFolder folder;
  const std::string path = folder / "run.safetensors";
  Probe network;
  OwnStep step(network);
  step.SetTrain();
  const Tensor one = Tensor::From({1.0f}, {1}), zero = Tensor::From({0.0f}, {1});
  EXPECT_TRUE(step(one, zero).status().ok());
  EXPECT_EQ(MovedWeight(network), -1.0f);
  const auto replace = [&](double rate) {
    step.optimizer = nn::SGD(network.TrainableParams(), {.learning_rate = rate, .momentum = 0.5});
  };
  replace(0.5);
  EXPECT_TRUE(step(one, zero).status().ok());
  EXPECT_EQ(MovedWeight(network), -1.5f);
  Model model(step);
  MPC_ASSERT_OK(model.Train(1, OneRow(1)));
  EXPECT_EQ(MovedWeight(network), -2.25f);
  replace(0.25);
  MPC_ASSERT_OK(model.Train(1, OneRow(1)));
  EXPECT_EQ(MovedWeight(network), -2.5f);
  MPC_ASSERT_OK(model.SaveCheckpoint(path));
  MPC_ASSERT_OK(model.LoadCheckpoint(path, {.continue_run = false}).status());
  replace(0.5);
  step.scaler = amp::AmpScaler({.init_loss_scaling = 32.0});
  MPC_ASSERT_OK(model.Train(1, OneRow(1)));
  EXPECT_EQ(MovedWeight(network), -3.0f);
  EXPECT_EQ(model.loss_scale(), 32.0);
  MPC_ASSERT_OK(model.SaveCheckpoint(path));
  std::set<std::string> names;
  for (const Parameter& entry : model.AllState()) EXPECT_TRUE(names.insert(entry.name()).second) << entry.name();
}

TEST(ReplacedOptimizer, InACallbackCountsFromTheNextStep) {
  Probe network;
  SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1.0});
  Model model(network, loss, optimizer);
  LambdaCallback replace({.on_train_step_end = [&](RunContext& context) {
    if (context.global_step == 1) optimizer = nn::SGD(network.TrainableParams(), {.learning_rate = 0.5});
  }});
  const data::Row row = {Tensor::From({1.0f}, {1}), Tensor::From({0.0f}, {1})};
  MPC_ASSERT_OK(model.Train(1, Batches({row, row, row}), {replace}));
  EXPECT_EQ(MovedWeight(network), -2.0f);
  EXPECT_EQ(*optimizer.step(), 2);
}

// Low copies and sums of gradients have the shapes of the Parameters, and flat updates lie side by side.
TEST(ReplacedCell, WithItsOptimizerAtEveryLevelAndInsideAnUpdate) {
  for (const testing::Level& level : {testing::Level{"O0", {}}, testing::Level{"O2", DType::kBF16}}) {
    const auto train = [&](TwoLayers& net, Model& model, const std::function<void()>& replace) {
      MPC_EXPECT_OK(model.Train(1, GoodBatches({6}, 3)));
      replace();
      // What is left of the update that began is given up.
      MPC_EXPECT_OK(model.Train(2, GoodBatches({6}, 2)));
      return net.fc2.weight.Value()->ToFloats();
    };
    const auto make = [](std::int64_t width) {
      SetSeed(3);
      TwoLayers net;
      net.fc1 = nn::Dense(6, width);
      net.fc2 = nn::Dense(width, 3);
      return net;
    };
    const ModelOptions options = {.amp_level = level.level, .amp_dtype = level.dtype, .accumulation_steps = 2};
    nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
    TwoLayers net = make(8);
    nn::AdamW optimizer(net.TrainableParams(), {.learning_rate = 0.01});
    Model model(net, loss, optimizer, options);
    const std::vector<float> replaced = train(net, model, [&] {
      net = make(16);
      optimizer = nn::AdamW(net.TrainableParams(), {.learning_rate = 0.01});
    });
    TwoLayers fresh = make(16);
    nn::AdamW trainer(fresh.TrainableParams(), {.learning_rate = 0.01});
    Model from_scratch(fresh, loss, trainer, options);
    MPC_EXPECT_OK(from_scratch.Train(2, GoodBatches({6}, 2)));
    EXPECT_EQ(replaced, fresh.fc2.weight.Value()->ToFloats()) << level.level;
    testing::TemporaryFolder folder;
    MPC_EXPECT_OK(model.SaveCheckpoint(folder / "run.safetensors"));
  }
}

TEST(StepKey, IsEqualForEqualStructuresOfTheSameObjects) {
  Layered net, other;
  const std::string key = internal::StepKey(&net, {kRow}, {});
  EXPECT_EQ(internal::StepKey(&net, {kRow}, {}), key);
  EXPECT_NE(internal::StepKey(&other, {kRow}, {}), key) << "it binds other Parameters";
  net.fc.weight = other.fc.weight;
  EXPECT_NE(internal::StepKey(&net, {kRow}, {}), key);
}

}  // namespace
}  // namespace mpc
