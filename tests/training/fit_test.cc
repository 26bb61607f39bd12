// Model::Fit: when it evaluates, what callbacks see of it, and that training does not notice.
#include <gmock/gmock.h>

#include "tests/frontend/temporary_folder.h"
#include "tests/training/probe.h"
#include "tests/training/resume_support.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const Shape kImages = {2, 6, 6};

/// Writes down the hooks with epoch and step, and what evaluation has measured by then.
class Hooks : public Callback {
 public:
  void OnEpochBegin(RunContext& context) override { Add("epoch", context); }
  void OnStepEnd(RunContext& context) override {
    Add("step", context);
    if (context.global_step == stop_at) context.RequestStop();
  }
  void OnEvalBegin(RunContext& context) override { Add("eval", context); }
  void OnEvalEnd(RunContext& context) override { Add("eval end", context); }
  void OnEpochEnd(RunContext& context) override {
    Add("epoch end", context);
    results.push_back(context.eval_results());
    losses.push_back(context.loss());
  }
  void OnTrainEnd(RunContext& context) override { names = context.eval_names(); }

  std::vector<std::string> events, names;
  std::vector<std::map<std::string, double>> results;
  std::vector<float> losses;
  std::int64_t stop_at = -1;

 private:
  void Add(const std::string& hook, const RunContext& context) {
    const std::string seen = context.eval_results().empty() ? "" : " seen";
    events.push_back(hook + " " + std::to_string(context.epoch) + "." + std::to_string(context.step_in_epoch) + seen);
  }
};

class FitLevels : public ::testing::TestWithParam<Level> {};

TEST_P(FitLevels, EvaluationChangesNoBitOfTraining) {
  const data::Dataset batches = ShuffledBatches(3);
  const DynamicLossScaleManager scale({.init_loss_scale = 1024, .scale_window = 4});
  Training<ConvNorm> alone(GetParam(), scale);
  LossRecorder expected;
  MPC_ASSERT_OK(alone.model->Train(3, batches, {expected}));
  Training<ConvNorm> evaluated(GetParam(), scale);
  LossRecorder losses;
  // Its last batch is smaller: two more Programs.
  std::vector<data::Row> rows = {MakeBatch(kImages, 8, 50), MakeBatch(kImages, 3, 51)};
  MPC_ASSERT_OK(evaluated.model->Fit(3, batches, Batches(std::move(rows)), {}, {losses}));
  EXPECT_EQ(losses.losses, expected.losses);
  EXPECT_THAT(Differences(StateOf(*alone.model), StateOf(*evaluated.model)), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Levels, FitLevels, ::testing::ValuesIn(AllLevels()), LevelName);

TEST(Fit, EvaluatesTheTrainingSetItself) {
  Training<ConvNorm> alone({"O0", {}});
  LossRecorder expected, losses;
  MPC_ASSERT_OK(alone.model->Train(2, ShuffledBatches(3), {expected}));
  Training<ConvNorm> evaluated({"O0", {}});
  const data::Dataset batches = ShuffledBatches(3);
  MPC_ASSERT_OK(evaluated.model->Fit(2, batches, batches, {}, {losses}));
  EXPECT_EQ(losses.losses, expected.losses);
}

TEST(Fit, CallbacksFindTheResultsAtTheEndOfTheEpoch) {
  Training<ConvNorm> training({"O2", DType::kF16});
  Hooks hooks;
  LossRecorder losses;
  const data::Dataset valid = GoodBatches(kImages, 2);
  MPC_ASSERT_OK(training.model->Fit(2, GoodBatches(kImages, 2), valid, {}, {hooks, losses}));
  EXPECT_THAT(hooks.events,
              ElementsAre("epoch 1.0", "step 1.1", "step 1.2", "eval 1.2", "eval end 1.2 seen", "epoch end 1.2 seen",
                          "epoch 2.0", "step 2.1", "step 2.2", "eval 2.2", "eval end 2.2 seen", "epoch end 2.2 seen"));
  EXPECT_THAT(hooks.names, ElementsAre("eval_accuracy", "eval_loss"));
  // The loss of the context is still that of training.
  EXPECT_THAT(hooks.losses, ElementsAre(losses.losses[1], losses.losses[3]));
  ASSERT_EQ(hooks.results.size(), 2u);
  EXPECT_EQ(hooks.results[1].size(), 2u);
  EXPECT_GT(hooks.results[1].at("eval_loss"), 0);
  absl::StatusOr<std::map<std::string, double>> after = training.model->Eval(valid);
  MPC_ASSERT_OK(after.status());
  EXPECT_EQ(hooks.results[1].at("eval_accuracy"), after->at("accuracy"));
}

TEST(Fit, FrequencyIsANumberOrAListOfEpochs) {
  const auto evaluated = [](const FitOptions& options) {
    Training<ConvNorm> training({"O0", {}});
    Hooks hooks;
    MPC_EXPECT_OK(training.model->Fit(4, GoodBatches(kImages, 1), GoodBatches(kImages, 1), options, {hooks}));
    std::vector<int> epochs;
    for (std::size_t i = 0; i < hooks.results.size(); ++i) {
      if (!hooks.results[i].empty()) epochs.push_back(static_cast<int>(i) + 1);
    }
    return epochs;
  };
  EXPECT_THAT(evaluated({}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(evaluated({.valid_frequency = 2}), ElementsAre(2, 4));
  EXPECT_THAT(evaluated({.valid_frequency = {1, 4, 9}}), ElementsAre(1, 4));
}

/// A metric of a user's own, under a name that says nothing: minus the mean loss.
class Negated : public Loss {
 public:
  absl::StatusOr<double> Eval() const override {
    const absl::StatusOr<double> mean = Loss::Eval();
    return mean.ok() ? absl::StatusOr<double>(-*mean) : mean;
  }
  bool SmallerIsBetter() const override { return false; }
};

TEST(Fit, MonitorsAskTheMetricWhichWayIsBetter) {
  // Training improves both from epoch to epoch, whatever they are called.
  for (const bool own : {false, true}) {
    Probe network(1, 0.0);
    nn::MSELoss loss;
    nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 0.1});
    const std::shared_ptr<Metric> metric =
        own ? std::shared_ptr<Metric>(std::make_shared<Negated>()) : std::make_shared<MSE>();
    const data::Dataset ones = Batches({{Tensor::Full({2, 1}, 1.0), Tensor::Full({2, 1}, 1.0)}});
    EarlyStopping stopping({.monitor = "eval_measured", .patience = 2});
    Model model(network, loss, optimizer, {.metrics = {MetricRef("measured", metric)}});
    MPC_ASSERT_OK(model.Fit(4, ones, ones, {}, {stopping}));
    EXPECT_EQ(stopping.stopped_epoch(), 0);
    EXPECT_EQ(stopping.best_epoch(), 4);
  }
}

TEST(Fit, AStoppedEpochIsNotEvaluated) {
  Training<ConvNorm> training({"O0", {}});
  Hooks hooks;
  hooks.stop_at = 1;
  MPC_ASSERT_OK(training.model->Fit(2, GoodBatches(kImages, 2), GoodBatches(kImages, 1), {}, {hooks}));
  EXPECT_THAT(hooks.events, ElementsAre("epoch 1.0", "step 1.1", "epoch end 1.1"));
}

TEST(Fit, RefusesByNameBeforeItTrains) {
  Training<ConvNorm> training({"O0", {}});
  const data::Dataset batches = GoodBatches(kImages, 1);
  const auto error = [&](const data::Dataset& valid, const FitOptions& options) {
    return std::string(training.model->Fit(1, batches, valid, options).message());
  };
  EXPECT_EQ(error(batches, {.valid_frequency = 0}), "valid_frequency must be at least 1, got 0");
  EXPECT_EQ(error(batches, {.valid_frequency = {2, 0}}),
            "valid_frequency lists epochs, which are at least 1, got {2, 0}");
  EXPECT_THAT(error(data::GeneratorDataset({{Values({8, 2, 6, 6})}}, {"data"}), {}),
              HasSubstr("evaluation (the network's inputs and a label) takes 2 columns, the data set has 1 (data)"));
  EXPECT_EQ(training.model->global_step(), 0);
  Model without_loss(*training.network);
  EXPECT_EQ(without_loss.Fit(1, batches, batches).message(), "Eval needs a Model with a loss");
}

TEST(Fit, AnEndlessSourceTrainsAsFarAsTakeSays) {
  std::int64_t reads = 0;
  const auto endless = [&reads]() -> data::Generator {
    return [&reads]() -> std::optional<data::Row> {
      ++reads;
      return data::Row{Tensor::Full({4}, 1.0), Tensor::Full({1}, 1.0)};
    };
  };
  nn::Dense network(4, 1);
  nn::MSELoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 0.1});
  Model model(network, loss, optimizer);
  const absl::Status status = model.Train(1, data::GeneratorDataset(endless, {"x", "y"}).Take(8).Batch(4));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(model.global_step(), 2);
  EXPECT_EQ(reads, 8 + 8) << "counted once, and trained";
}

TEST(Fit, LabelsMeanTheClassesOfTraining) {
  const std::vector<std::string> names = {"ant", "bee", "cow"};
  const data::Dataset train = ShuffledBatches(3).WithClassNames(names);
  const data::Dataset other = ShuffledBatches(3).WithClassNames({"ant", "cow"});
  const char* const refused =
      "the classes of the evaluated data set are ant, cow, but those of training are ant, bee, cow: labels would mean "
      "other classes. WithClassNames gives a data set other names";
  Training<ConvNorm> trained({"O0", {}});
  EXPECT_EQ(trained.model->Fit(1, train, other).message(), refused);
  EXPECT_EQ(trained.model->global_step(), 0) << "before the first step";
  MPC_ASSERT_OK(trained.model->Fit(1, train, other.WithClassNames(names)));
  EXPECT_EQ(trained.model->Eval(other).status().message(), refused);
  EXPECT_EQ(trained.model->Fit(1, ShuffledBatches(3), other).message(), refused);
  EXPECT_TRUE(trained.model->Eval(ShuffledBatches(3)).ok()) << "one without names says nothing";
}

TEST(Fit, AnErrorOfEvaluationNamesItsEpoch) {
  Training<ConvNorm> training({"O0", {}});
  const data::Dataset wrong = Batches({MakeBatch(kImages, 8, 0, 5)});
  const absl::Status status = training.model->Fit(3, GoodBatches(kImages, 1), wrong, {.valid_frequency = 2});
  EXPECT_THAT(std::string(status.message()), HasSubstr("evaluation after epoch 2: "));
  EXPECT_EQ(training.model->global_step(), 2);
}

TEST(Fit, AnEvaluationBeyondTheMemoryBudgetIsFoundBeforeTheFirstStep) {
  const data::Dataset train = GoodBatches(kImages, 2, 2);
  const data::Dataset valid = GoodBatches(kImages, 1, 256);
  Training<ConvNorm> plain({"O0", {}});
  MPC_ASSERT_OK(plain.model->Fit(1, train, valid));
  const std::size_t planned = plain.model->compiled().front()->program.planned_bytes();
  MPC_ASSERT_OK(SetContext({.memory_budget = static_cast<std::int64_t>(planned)}));
  Training<ConvNorm> training({"O0", {}});
  const absl::Status status = training.model->Fit(2, train, valid, {.valid_frequency = 2});
  const absl::Status trained = training.model->Train(1, train);
  MPC_ASSERT_OK(SetContext({}));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr("evaluation, before the first step: @eval_step: memory budget"));
  MPC_EXPECT_OK(trained);
  EXPECT_EQ(training.model->global_step(), 2) << "those of Train alone";
}

/// Freezes the normalisation when training begins.
class FreezeNorm : public Callback {
 public:
  explicit FreezeNorm(ConvNorm& network) : network_(network) {}
  void OnTrainBegin(RunContext& context) override { network_.norm.SetTrain(false); }

 private:
  ConvNorm& network_;
};

TEST(Fit, ACellThatStaysInInferenceStaysThere) {
  Training<ConvNorm> alone({"O0", {}});
  LossRecorder expected, losses;
  MPC_ASSERT_OK(alone.model->Train(2, ShuffledBatches(2), {FreezeNorm(*alone.network), expected}));
  Training<ConvNorm> evaluated({"O0", {}});
  MPC_ASSERT_OK(evaluated.model->Fit(2, ShuffledBatches(2), GoodBatches(kImages, 1), {},
                                     {FreezeNorm(*evaluated.network), losses}));
  EXPECT_EQ(losses.losses, expected.losses);
  EXPECT_FALSE(evaluated.network->norm.training());
  EXPECT_TRUE(evaluated.network->drop.training());
}

/// Reads and changes the Model through the context.
class Changes : public Callback {
 public:
  void OnEpochEnd(RunContext& context) override {
    TrainedModel& model = *context.trained();
    if (context.epoch == 1) {
      absl::StatusOr<TrainedModel::Weights> copied = model.CopyWeights();
      MPC_EXPECT_OK(copied.status());
      if (copied.ok()) weights = *std::move(copied);
      const absl::StatusOr<std::vector<TrainedModel::RateGroup>> groups = model.LearningRates();
      MPC_EXPECT_OK(groups.status());
      if (groups.ok()) rates = *groups;
      MPC_EXPECT_OK(model.SetLearningRate(0, 0.25));
      EXPECT_THAT(std::string(model.SetLearningRate(1, 0.25).message()), HasSubstr("no group 1"));
    } else {
      MPC_EXPECT_OK(model.SetWeights(weights));
    }
    EXPECT_THAT(std::string(model.Resume("elsewhere", context).message()), HasSubstr("in OnTrainBegin only"));
  }
  TrainedModel::Weights weights;
  std::vector<TrainedModel::RateGroup> rates;
};

TEST(Fit, CallbacksReachWeightsAndLearningRates) {
  Training<ConvNorm> once({"O2", DType::kF16});
  MPC_ASSERT_OK(once.model->Train(1, ShuffledBatches(3)));
  Training<ConvNorm> training({"O2", DType::kF16});
  Changes changes;
  MPC_ASSERT_OK(training.model->Train(2, ShuffledBatches(3), {changes}));
  ASSERT_EQ(changes.rates.size(), 1u);
  EXPECT_EQ(changes.rates[0].name, "Momentum group 0");
  EXPECT_FLOAT_EQ(static_cast<float>(changes.rates[0].learning_rate.value_or(0)), 0.05f);
  EXPECT_EQ(training.optimizer->learning_rate().value_or(0), 0.25);
  EXPECT_THAT(Differences(ParametersOf(*once.network), ParametersOf(*training.network)), IsEmpty());
}

TEST(Fit, EarlyStoppingGivesTheBestWeightsBack) {
  Training<ConvNorm> once({"O2", DType::kF16});
  MPC_ASSERT_OK(once.model->Train(1, ShuffledBatches(3)));
  Training<ConvNorm> training({"O2", DType::kF16});
  // No later epoch is better by so much.
  EarlyStopping stopping({.min_delta = 100, .patience = 2, .restore_best_weights = true});
  History history;
  MPC_ASSERT_OK(training.model->Fit(9, ShuffledBatches(3), GoodBatches(kImages, 1), {}, {stopping, history}));
  EXPECT_EQ(stopping.stopped_epoch(), 3);
  EXPECT_EQ(stopping.best_epoch(), 1);
  EXPECT_EQ(stopping.best(), history.of("eval_loss").at(0));
  EXPECT_EQ(training.model->global_step(), 9);
  EXPECT_THAT(Differences(ParametersOf(*once.network), ParametersOf(*training.network)), IsEmpty());
}

TEST(Fit, ABackedUpRunEndsWhereItWouldHaveEnded) {
  const TemporaryFolder folder;
  const data::Dataset batches = ShuffledBatches(3), valid = GoodBatches(kImages, 1);
  Training<ConvNorm> whole({"O2", DType::kF16});
  MPC_ASSERT_OK(whole.model->Fit(3, batches, valid));
  BackupAndRestore keeper({.backup_dir = folder.path()});
  Training<ConvNorm> crashed({"O2", DType::kF16});
  EXPECT_EQ(crashed.model->Fit(3, batches, valid, {}, {keeper, FailAt(8)}).message(), "power");
  Training<ConvNorm> restarted({"O2", DType::kF16});
  Hooks hooks;
  // An interruption in the middle of an epoch, then the rest.
  MPC_ASSERT_OK(restarted.model->Fit(3, batches, valid, {},
                                     {keeper,
                                      LambdaCallback({.on_train_step_end =
                                                          [](RunContext& context) {
                                                            if (context.global_step == 8) context.Interrupt();
                                                          }}),
                                      hooks}));
  EXPECT_TRUE(keeper.restored());
  EXPECT_THAT(hooks.events, ElementsAre("epoch 3.0", "step 3.1", "step 3.2", "epoch end 3.2"));
  Training<ConvNorm> last({"O2", DType::kF16});
  MPC_ASSERT_OK(last.model->Fit(3, batches, valid, {}, {keeper}));
  EXPECT_THAT(Differences(StateOf(*whole.model), StateOf(*last.model)), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Fit, RatesFallOnAPlateauAndSchedulesAreRefused) {
  Training<ConvNorm> training({"O0", {}});
  const data::Dataset batches = GoodBatches(kImages, 1);
  MPC_ASSERT_OK(training.model->Fit(3, batches, batches, {},
                                    {ReduceLROnPlateau({.factor = 0.5, .patience = 1, .min_delta = 100})}));
  EXPECT_FLOAT_EQ(static_cast<float>(training.optimizer->learning_rate().value_or(0)), 0.0125f);
  Training<ConvNorm> scheduled({"O0", {}}, {}, {.learning_rate = nn::StepDecay({})});
  EXPECT_EQ(scheduled.model->Fit(1, batches, batches, {}, {ReduceLROnPlateau()}).message(),
            "ReduceLROnPlateau: a schedule computes the learning rate of Momentum group 0");
}

/// Trains TwoLayers and does not say by what.
class UnnamedStep : public nn::TrainingStep {
 public:
  MPC_CELL(UnnamedStep, network)
  UnnamedStep(TwoLayers& network, std::vector<nn::Optimizer*> optimizers)
      : network(network), optimizers_(std::move(optimizers)) {}
  Tensor Construct(Tensor x, Tensor label) {
    const Tensor loss = reduce_mean(softmax_cross_entropy(network(x), label));
    for (nn::Optimizer* optimizer : optimizers_) (*optimizer)(ops::Backward(loss, optimizer->parameters()));
    return loss;
  }
  TwoLayers& network;

 private:
  std::vector<nn::Optimizer*> optimizers_;
};

TEST(Fit, RatesOfAStepThatDoesNotNameItsOptimizersFallToo) {
  const ReduceLROnPlateauOptions falls{.monitor = "loss", .factor = 0.5, .patience = 1, .min_delta = 100};
  TwoLayers network;
  nn::SGD first(network.fc1.TrainableParams(), {.learning_rate = 0.5});
  nn::SGD second({{.params = {network.fc2.weight}}, {.params = {network.fc2.bias}, .learning_rate = 0.25}},
                 {.learning_rate = 0.125});
  UnnamedStep step(network, {&first, &second});
  MPC_ASSERT_OK(Model(step).Train(3, GoodBatches({6}, 2), {ReduceLROnPlateau(falls)}));
  EXPECT_EQ(first.learning_rate().value_or(0), 0.125);
  EXPECT_EQ(second.learning_rate(0).value_or(0), 0.03125);
  EXPECT_EQ(second.learning_rate(1).value_or(0), 0.0625);

  nn::SGD scheduled(network.TrainableParams(), {.learning_rate = nn::StepDecay({})});
  UnnamedStep by_schedule(network, {&scheduled});
  EXPECT_EQ(Model(by_schedule).Train(2, GoodBatches({6}, 2), {ReduceLROnPlateau(falls)}).message(),
            "ReduceLROnPlateau: a schedule computes the learning rate of SGD group 0");
  UnnamedStep by_none(network, {});
  EXPECT_EQ(Model(by_none).Train(2, GoodBatches({6}, 2), {ReduceLROnPlateau(falls)}).message(),
            "ReduceLROnPlateau: the step calls no optimizer whose rate could fall");
}

/// A loss that learns a factor and normalises predictions by running statistics.
class LearningLoss : public nn::LossBase {
 public:
  MPC_CELL(LearningLoss, factor, norm)
  Tensor Construct(Tensor prediction, Tensor label) { return reduce_mean(square(norm(prediction) * factor - label)); }
  Parameter factor{{1}, Constant(1.0)};
  nn::BatchNorm1d norm{3};
};

/// Network, loss and an optimizer of the parameters of both.
struct LossTraining {
  LossTraining() {
    SetSeed(7);
    std::vector<Parameter> parameters = network.TrainableParams();
    for (const Parameter& parameter : loss.TrainableParams()) parameters.push_back(parameter);
    optimizer.emplace(parameters, nn::MomentumOptions{.learning_rate = 0.05});
    model.emplace(network, loss, *optimizer);
  }
  TwoLayers network;
  LearningLoss loss;
  std::optional<nn::Momentum> optimizer;
  std::optional<Model> model;
};

TEST(Fit, ALossWithStateTrainsIsEvaluatedAndResumes) {
  const TemporaryFolder folder;
  const data::Dataset batches = GoodBatches({6}, 4);
  LossTraining whole;
  MPC_ASSERT_OK(whole.model->Fit(1, batches, batches, {}, {SaveAt(2, folder / "at2")}));
  EXPECT_NE(whole.loss.factor.Value()->ToFloats()[0], 1.0f);
  EXPECT_NE(whole.loss.norm.moving_mean.Value()->ToFloats()[0], 0.0f);
  const Snapshot trained = StateOf(*whole.model);
  EXPECT_TRUE(trained.contains("factor") && trained.contains("norm.moving_mean"));
  EXPECT_TRUE(trained.contains("optimizer.factor.velocity"));
  EXPECT_TRUE(whole.loss.norm.training()) << "as before evaluation";
  // Evaluation reads running statistics, and so moves none.
  MPC_ASSERT_OK(whole.model->Eval(batches).status());
  EXPECT_THAT(Differences(trained, StateOf(*whole.model)), IsEmpty());

  LossTraining resumed;
  MPC_ASSERT_OK(resumed.model->LoadCheckpoint(folder / "at2").status());
  MPC_ASSERT_OK(resumed.model->Train(1, batches));
  EXPECT_THAT(Differences(trained, StateOf(*resumed.model)), IsEmpty());
}

/// A loss with a Parameter of the name that a dense layer's has.
class WeightLoss : public nn::LossBase {
 public:
  MPC_CELL(WeightLoss, weight)
  Tensor Construct(Tensor x, Tensor label) { return reduce_mean(square(x * weight - label)); }
  Parameter weight{{3}, Constant(1.0)};
};

TEST(Fit, AParameterOfTheLossNeedsAnOptimizerAndANameOfItsOwn) {
  TwoLayers network;
  LearningLoss loss;
  nn::SGD partial(network.TrainableParams());
  EXPECT_EQ(Model(network, loss, partial).status().message(),
            "no optimizer updates factor, norm.gamma, norm.beta; give them to the optimizer, or freeze them with "
            "SetRequiresGrad(path, false)");
  nn::Dense layer(3, 3);
  WeightLoss same_name;
  EXPECT_EQ(Model(layer, same_name).status().message(),
            "Model: Dense and WeightLoss both have a Parameter 'weight'; give the member of one of them another name");
}

}  // namespace
}  // namespace mpc::testing
