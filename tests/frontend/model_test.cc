#include "frontend/train/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "frontend/graph/eager.h"
#include "frontend/graph/trace.h"
#include "tests/training/probe.h"

namespace mpc {
namespace {

using testing::Batches;
using ::testing::ElementsAre;
using testing::GoodBatches;
using ::testing::HasSubstr;
using testing::MakeBatch;
using testing::Training;
using testing::TwoLayers;
using testing::Values;

const Shape kFeatures = {6};

std::string TrainError(Model& model, const data::Dataset& dataset = GoodBatches(kFeatures, 1)) {
  return std::string(model.Train(1, dataset).message());
}

class Recorder : public Callback {
 public:
  void OnTrainBegin(RunContext& context) override { Add("begin", context); }
  void OnEpochBegin(RunContext& context) override { Add("epoch", context); }
  void OnStepBegin(RunContext& context) override { Add("step", context); }
  void OnStepEnd(RunContext& context) override {
    Add("step end", context);
    losses.push_back(context.loss());
    if (context.global_step == stop_at) context.RequestStop();
  }
  void OnEpochEnd(RunContext& context) override { Add("epoch end", context); }
  void OnTrainEnd(RunContext& context) override { Add("end", context); }

  void Add(const std::string& hook, const RunContext& context) {
    events.push_back(hook + " " + std::to_string(context.epoch) + "." + std::to_string(context.step_in_epoch) + "/" +
                     std::to_string(context.global_step));
  }

  std::vector<std::string> events;
  std::vector<float> losses;
  std::int64_t stop_at = -1;
};

TEST(Model, CallbacksRunInOrder) {
  Training<TwoLayers> training({"O0", {}});
  Recorder recorder;
  MPC_ASSERT_OK(training.model->Train(2, GoodBatches(kFeatures, 2), {recorder}));
  EXPECT_THAT(recorder.events,
              ElementsAre("begin 0.0/0", "epoch 1.0/0", "step 1.1/0", "step end 1.1/1", "step 1.2/1", "step end 1.2/2",
                          "epoch end 1.2/2", "epoch 2.0/2", "step 2.1/2", "step end 2.1/3", "step 2.2/3",
                          "step end 2.2/4", "epoch end 2.2/4", "end 2.2/4"));
}

TEST(Model, RequestStopEndsAfterTheStep) {
  Training<TwoLayers> training({"O0", {}});
  Recorder recorder;
  recorder.stop_at = 1;
  MPC_ASSERT_OK(training.model->Train(2, GoodBatches(kFeatures, 2), {recorder}));
  EXPECT_THAT(recorder.events, ElementsAre("begin 0.0/0", "epoch 1.0/0", "step 1.1/0", "step end 1.1/1",
                                           "epoch end 1.1/1", "end 1.1/1"));
  EXPECT_EQ(training.model->global_step(), 1);
}

TEST(Model, TrainContinuesAndEpochNumbersRestart) {
  Training<TwoLayers> twice({"O0", {}});
  Recorder recorder;
  MPC_ASSERT_OK(twice.model->Train(1, GoodBatches(kFeatures, 2), {recorder}));
  MPC_ASSERT_OK(twice.model->Train(1, GoodBatches(kFeatures, 2), {recorder}));
  EXPECT_EQ(recorder.events.back(), "end 1.2/4");
  Training<TwoLayers> once({"O0", {}});
  MPC_ASSERT_OK(once.model->Train(2, GoodBatches(kFeatures, 2)));
  EXPECT_EQ(testing::StateOf(*twice.model), testing::StateOf(*once.model));
}

TEST(Model, LastPartialBatchSharesTheState) {
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 61; ++i) {
    rows.push_back({Values({6}, i), Tensor::Scalar<std::int32_t>(static_cast<std::int32_t>(i % 3))});
  }
  SetSeed(7);
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.1});
  Model model(network, loss, optimizer, {.metrics = {"accuracy", "loss"}});
  const data::Dataset dataset = data::GeneratorDataset(rows, {"data", "label"}).Batch(32);
  MPC_ASSERT_OK(model.Train(30, dataset));
  EXPECT_EQ(model.global_step(), 60);
  EXPECT_EQ(*optimizer.step(), 60) << "29 of 32 rows update the same state";
  EXPECT_EQ(model.compiled().size(), 2u) << "one Program a batch shape";

  absl::StatusOr<std::map<std::string, double>> evaluated = model.Eval(dataset);
  ASSERT_TRUE(evaluated.ok()) << evaluated.status();
  EXPECT_GT(evaluated->at("accuracy"), 0.4) << "better than one in three";

  // Predict sees the same parameters: its accuracy, counted by hand, is Eval's.
  std::int64_t right = 0;
  for (const data::Row& row : rows) {
    absl::StatusOr<Tensor> logits = model.Predict(reshape(row[0], {1, 6}));
    ASSERT_TRUE(logits.ok()) << logits.status();
    right += argmax(*logits).Item<int>() == row[1].Item<int>();
  }
  EXPECT_NEAR(evaluated->at("accuracy"), static_cast<double>(right) / 61, 1e-9);
}

/// The mean over the places of a row of any length, [N, T, 6], through two layers.
class MeanOfPlaces : public nn::Cell {
 public:
  MPC_CELL(MeanOfPlaces, layers)
  Tensor Construct(const Tensor& x) { return layers(reduce_mean(x, {1})); }
  TwoLayers layers;
};

TEST(Model, BucketsCompileAProgramForEachBoundary) {
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 60; ++i) {
    const std::int64_t length = i % 7 + 1;
    rows.push_back({Values({length, 6}, i), Tensor::Scalar<std::int32_t>(static_cast<std::int32_t>(i % 3))});
  }
  const data::Dataset buckets =
      data::GeneratorDataset(rows, {"data", "label"})
          .BucketBatchByLength("data", {4, 8}, {4, 4, 4}, {.pad_to_bucket_boundary = true, .drop_remainder = true});
  MeanOfPlaces network;
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.1});
  Model model(network, loss, optimizer);
  MPC_ASSERT_OK(model.Train(2, buckets));
  EXPECT_EQ(model.global_step(), 2 * *buckets.size());
  EXPECT_EQ(model.compiled().size(), 2u) << "lengths 1 to 7 have two batch shapes";
}

TEST(Model, OneHotAccuracyEqualsSparseAccuracy) {
  Training<TwoLayers> one_hot({"O0", {}});
  const data::Row batch = MakeBatch(kFeatures, 9, 0);
  absl::StatusOr<std::map<std::string, double>> dense = one_hot.model->Eval(Batches({batch}));
  ASSERT_TRUE(dense.ok()) << dense.status();
  nn::SoftmaxCrossEntropyWithLogits sparse_loss({.sparse = true, .reduction = "mean"});
  Model sparse(*one_hot.network, sparse_loss, {.metrics = {"accuracy"}});
  absl::StatusOr<std::map<std::string, double>> indices = sparse.Eval(Batches({{batch[0], argmax(batch[1])}}));
  ASSERT_TRUE(indices.ok()) << indices.status();
  EXPECT_EQ(dense->at("accuracy"), indices->at("accuracy"));
}

TEST(Model, EvalAndPredictLeaveTheModeAsItWas) {
  Training<testing::ConvNorm> training({"O2", DType::kF16}, FixedLossScaleManager({.loss_scale = 64}));
  const Shape image = {2, 6, 6};
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(image, 2)));
  const testing::Snapshot before = testing::StateOf(*training.model);
  ASSERT_TRUE(training.model->Eval(GoodBatches(image, 2)).ok());
  absl::StatusOr<Tensor> first = training.model->Predict(Values({3, 2, 6, 6}));
  absl::StatusOr<Tensor> second = training.model->Predict(Values({3, 2, 6, 6}));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->dtype(), DType::kF32);
  EXPECT_EQ(first->ToFloats(), second->ToFloats()) << "no dropout";
  EXPECT_EQ(testing::StateOf(*training.model), before) << "no state moves";
  EXPECT_TRUE(training.network->training());
  EXPECT_EQ(training.model->Predict(Values({3, 2, 6, 6})).value().shape(), Shape({3, 3}));
}

TEST(Model, PredictsWithoutLossAndOptimizer) {
  TwoLayers network;
  Model model(network);
  absl::StatusOr<Tensor> logits = model.Predict(Values({2, 6}));
  ASSERT_TRUE(logits.ok()) << logits.status();
  EXPECT_EQ(logits->ToFloats(), network(Values({2, 6})).ToFloats());
  EXPECT_THAT(TrainError(model), HasSubstr("Train needs an optimizer"));
  EXPECT_THAT(std::string(model.Eval(GoodBatches(kFeatures, 1)).status().message()),
              HasSubstr("needs a Model with a loss"));
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  Model evaluator(network, loss, {.metrics = {"loss"}});
  EXPECT_TRUE(evaluator.Eval(GoodBatches(kFeatures, 1)).ok());
  EXPECT_THAT(TrainError(evaluator), HasSubstr("Train needs an optimizer"));
}

TEST(Model, PeakIsKnownBeforeTheFirstStep) {
  Training<TwoLayers> training({"O0", {}});
  EXPECT_EQ(training.model->peak_bytes(), 0u);
  MPC_ASSERT_OK(training.model->Train(1, GoodBatches(kFeatures, 1)));
  // Parameters and slots: 2 * (6 * 8 + 8 + 8 * 3 + 3) floats at least.
  EXPECT_GE(training.model->peak_bytes(), 2u * 83 * 4);
}

TEST(ModelErrors, Options) {
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::SGD optimizer(network.TrainableParams());
  const auto error = [&](ModelOptions options) {
    Model model(network, loss, optimizer, std::move(options));
    EXPECT_EQ(model.status(), model.Train(1, GoodBatches(kFeatures, 1)));
    EXPECT_EQ(model.status(), model.Predict(Values({2, 6})).status());
    EXPECT_TRUE(model.compiled().empty()) << "nothing is compiled";
    return std::string(model.status().message());
  };
  EXPECT_THAT(error({.amp_level = "o4"}), HasSubstr("unknown level 'o4'; choose O0, O1, O2, O3 or auto"));
  EXPECT_THAT(error({.amp_level = "02"}), HasSubstr("the letter O, not the digit zero"));
  EXPECT_THAT(error({.amp_level = "O0", .amp_dtype = DType::kF16}), HasSubstr("O0 is full f32"));
  EXPECT_THAT(error({.amp_level = "O2", .amp_dtype = DType::kF64}), HasSubstr("choose f16 or bf16"));
  EXPECT_THAT(error({.metrics = {"accuracies"}}), HasSubstr("accuracies"));
  EXPECT_THAT(error({.device = "tpu"}), HasSubstr("tpu"));
  EXPECT_THAT(error({.loss_scale_manager = FixedLossScaleManager({.loss_scale = 0.5})}), HasSubstr("got 0.5"));
  EXPECT_THAT(error({.loss_scale_manager = FixedLossScaleManager({.loss_scale = NAN})}), HasSubstr("nan"));
  EXPECT_THAT(error({.loss_scale_manager = DynamicLossScaleManager({.scale_factor = 1.0})}), HasSubstr("growth"));
  EXPECT_THAT(error({.loss_scale_manager = DynamicLossScaleManager({.scale_window = 0})}), HasSubstr("interval"));
}

TEST(ModelErrors, FixedScaleWithoutDropNeedsTheOptimizersScale) {
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  const FixedLossScaleManager manager({.loss_scale = 1024, .drop_overflow_update = false});
  nn::Momentum differs(network.TrainableParams(), {.loss_scale = 512});
  Model first(network, loss, differs, {.loss_scale_manager = manager});
  EXPECT_THAT(TrainError(first), ::testing::AllOf(HasSubstr("1024"), HasSubstr("Momentum has 512")));
  nn::AdamWeightDecay has_none(network.TrainableParams());
  Model second(network, loss, has_none, {.loss_scale_manager = manager});
  EXPECT_THAT(TrainError(second), ::testing::AllOf(HasSubstr("1024"), HasSubstr("AdamWeightDecay has none")));
  nn::Momentum agrees(network.TrainableParams(), {.loss_scale = 1024});
  Model third(network, loss, agrees, {.loss_scale_manager = manager});
  MPC_EXPECT_OK(third.Train(1, GoodBatches(kFeatures, 1)));
}

TEST(ModelErrors, EveryTrainableParameterNeedsAnOptimizer) {
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::SGD partial(network.fc1.TrainableParams());
  Model unowned(network, loss, partial);
  EXPECT_THAT(TrainError(unowned), HasSubstr("no optimizer updates fc2.weight, fc2.bias"));
  MPC_ASSERT_OK(network.SetRequiresGrad("fc2", false));
  nn::SGD rest(network.TrainableParams());
  Model frozen(network, loss, rest);
  MPC_EXPECT_OK(frozen.Train(1, GoodBatches(kFeatures, 1)));
  MPC_ASSERT_OK(network.SetRequiresGrad("fc2", true));
  EXPECT_THAT(TrainError(frozen), HasSubstr("no optimizer updates fc2.weight, fc2.bias")) << "unfrozen since";
}

TEST(ModelErrors, Data) {
  Training<TwoLayers> training({"O0", {}});
  const data::Dataset three =
      data::GeneratorDataset({{Values({2, 6}), Values({2, 3}), Values({2})}}, {"data", "label", "weight"});
  EXPECT_THAT(TrainError(*training.model, three),
              HasSubstr("takes 2 columns, the data set has 3 (data, label, weight)"));
  EXPECT_THAT(std::string(training.model->Eval(three).status().message()), HasSubstr("takes 2 columns"));
  EXPECT_FALSE(training.model->Train(0, GoodBatches(kFeatures, 1)).ok());
  const data::Dataset short_set =
      data::GeneratorDataset(std::vector<data::Row>(5, {Values({6}), Values({3})}), {"data", "label"});
  EXPECT_THAT(TrainError(*training.model, short_set.Batch(8, /*drop_remainder=*/true)),
              ::testing::AllOf(HasSubstr("8"), HasSubstr("5")));
}

TEST(ModelErrors, InputsAreAsManyAsConstructTakes) {
  Training<TwoLayers> training({"O0", {}});
  const Tensor x = Values({2, 6});
  EXPECT_EQ(training.model->Predict(x, x, x).status().message(), "TwoLayers::Construct takes 1 tensor, got 3");
  EXPECT_EQ(training.model->Predict().status().message(), "TwoLayers::Construct takes 1 tensor, got 0");
  MPC_EXPECT_OK(training.model->Predict(x).status());
}

TEST(ModelErrors, AStepOfOnesOwnTakesWhatItsNetworkAndLossTake) {
  Training<TwoLayers> training({"O0", {}});
  nn::WithLossCell with_loss(*training.network, training.loss);
  nn::TrainOneStepCell step(with_loss, *training.optimizer);
  const Tensor x = Values({2, 6}), label = Values({2, 3});
  EXPECT_THAT(std::string(step(x, label, label).status().message()),
              HasSubstr("TwoLayers::Construct takes 1 tensor, got 2"));
  MPC_EXPECT_OK(step(x, label).status());
  EXPECT_THAT(std::string(training.model->LoadTrainStep({x, label, label}).status().message()),
              HasSubstr("TwoLayers::Construct takes 1 tensor, got 2"));
  Model model(step);
  const data::Dataset three = data::GeneratorDataset({{x, label, label}}, {"data", "label", "other"});
  EXPECT_THAT(std::string(model.Train(1, three).message()), HasSubstr("TwoLayers::Construct takes 1 tensor, got 2"));
}

/// Two outputs, which a loss of two inputs cannot take beside a label.
class TwoOutputs : public nn::Cell {
 public:
  MPC_CELL(TwoOutputs, fc)
  std::vector<Tensor> Construct(Tensor x) { return {fc(x), fc(x)}; }
  nn::Dense fc{6, 3};
};

TEST(ModelErrors, ALossTakesWhatTheNetworkReturnsAndALabel) {
  Training<TwoOutputs> training({"O0", {}});
  EXPECT_THAT(TrainError(*training.model, GoodBatches(kFeatures, 1)),
              HasSubstr("SoftmaxCrossEntropyWithLogits::Construct takes 2 tensors, got 3"));
}

TEST(ModelErrors, ALabelOutOfRangeHasItsRow) {
  TwoLayers network;
  nn::Momentum optimizer(network.TrainableParams());
  const auto labels = [](std::int32_t second) {
    return Batches({{Values({2, 6}), Tensor::From<std::int32_t>({0, 1}, {2})},
                    {Values({2, 6}), Tensor::From<std::int32_t>({2, second}, {2})}});
  };
  for (const char* reduction : {"mean", "none"}) {
    nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = reduction});
    Model model(network, loss, optimizer, {.metrics = {"accuracy"}});
    EXPECT_EQ(model.Train(1, labels(12)).message(),
              "training step 2 (epoch 1 step 2): label 12 in row 1 is out of range: there are 3 classes");
    EXPECT_EQ(model.global_step(), 1) << "the step before it is done";
    EXPECT_THAT(TrainError(model, labels(-1)), HasSubstr("label -1 in row 1 is out of range: there are 3 classes"));
    EXPECT_THAT(std::string(model.Eval(labels(3)).status().message()), HasSubstr("label 3 in row 1 is out of range"));
    MPC_EXPECT_OK(model.Train(1, labels(2)));
  }
}

TEST(ModelErrors, AMicroStepThatFailsIsOfTheStepThatItBegins) {
  TwoLayers network;
  nn::Momentum optimizer(network.TrainableParams());
  nn::SoftmaxCrossEntropyWithLogits loss({.sparse = true, .reduction = "mean"});
  Model model(network, loss, optimizer, {.accumulation_steps = 2});
  EXPECT_EQ(TrainError(model, Batches({{Values({2, 6}), Tensor::From<std::int32_t>({0, 7}, {2})}})),
            "training step 1 (epoch 1 step 1): label 7 in row 1 is out of range: there are 3 classes");
}

/// Sequences: the labels of a batch are rows of tokens, which the loss takes flat.
class TokenLoss : public nn::LossBase {
 public:
  MPC_CELL(TokenLoss)
  Tensor Construct(Tensor logits, Tensor labels) {
    return softmax_cross_entropy(reshape(logits, {-1, 3}), reshape(labels, {labels.size()}), "mean");
  }
};

TEST(ModelErrors, ALabelOutOfRangeIsFoundBehindAReshape) {
  nn::Dense network(6, 3);
  nn::SGD optimizer(network.TrainableParams());
  TokenLoss loss;
  Model model(network, loss, optimizer);
  const Tensor labels = Tensor::From<std::int32_t>({0, 1, 2, 0, 7, 1}, {2, 3});
  EXPECT_THAT(TrainError(model, Batches({{Values({2, 3, 6}), labels}})), HasSubstr("label 7 in row 1 is out of range"));
}

TEST(Model, SaysWhatIsStoredLowThoughItAsksForMasters) {
  TwoLayers network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::SGD optimizer(network.TrainableParams());
  Model low(network, loss, optimizer, {.amp = {.level = "O3", .master_weights = false, .verbosity = 0}});
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(low.Train(1, GoodBatches(kFeatures, 1)));
  EXPECT_EQ(::testing::internal::GetCapturedStderr().find("is stored in"), std::string::npos);
  Model full(network, loss, optimizer, {.amp_level = "O0"});
  ::testing::internal::CaptureStderr();
  MPC_ASSERT_OK(full.Train(2, GoodBatches(kFeatures, 1)));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said,
              HasSubstr("remark: level O0 with master weights, but fc1.weight and 3 more parameters are stored in "
                        "f16 since a step with master_weights = false: every update is rounded to it\n"));
  EXPECT_EQ(testing::Count(said, "more parameters are stored in"), 1);
}

TEST(ModelErrors, UnbatchedDataAreToldOfBatch) {
  const char* hint = "is the data set batched? .Batch(n) makes batches of its rows";
  Training<testing::ConvNorm> images({"O0", {}});
  const data::Dataset rows = data::GeneratorDataset({{Values({2, 6, 6}), Values({3})}}, {"data", "label"});
  EXPECT_THAT(
      TrainError(*images.model, rows),
      ::testing::AllOf(HasSubstr("Conv2d expects images [N, C, H, W], got tensor<2x6x6xf32>"), HasSubstr(hint)));
  Training<TwoLayers> features({"O0", {}});
  const data::Dataset vectors = data::GeneratorDataset({{Values({6}), Values({3})}}, {"data", "label"});
  EXPECT_THAT(TrainError(*features.model, vectors), HasSubstr(hint));
  const data::Dataset labels = data::GeneratorDataset({{Values({1, 6}), Values({3})}}, {"data", "label"});
  EXPECT_THAT(TrainError(*features.model, labels), HasSubstr(hint)) << "a batch of one row, and its label alone";
  MPC_EXPECT_OK(features.model->Train(1, vectors.Batch(1)));
}

TEST(ModelErrors, ImagesOfATypeThatNothingComputesInAreToBeCast) {
  Training<testing::ConvNorm> training({"O2", DType::kF16});
  const auto error = [&](DType dtype) {
    return TrainError(*training.model, Batches({{Tensor::Full({2, 2, 6, 6}, 1.0).To(dtype), Values({2, 3})}}));
  };
  for (const auto& [dtype, text] : {std::pair(DType::kI32, "i32"), {DType::kI64, "i64"}, {DType::kBool, "i1"}}) {
    EXPECT_EQ(error(dtype), absl::StrCat("convnorm/conv: conv2d does not take tensor<2x2x6x6x", text,
                                         "> as operand 0; cast it first, as with ops::Cast(x, DType::kF32)"));
  }
  for (const auto& [dtype, text] : {std::pair(DType::kF64, "f64"), {DType::kF8E5M2, "f8E5M2"}, {DType::kU8, "u8"}}) {
    EXPECT_EQ(error(dtype), absl::StrCat("input 'data' is tensor<2x2x6x6x", text, ">, and no kernel computes in ", text,
                                         "; cast it first, as with x.To(DType::kF32)"));
  }
}

TEST(ModelErrors, ShapesCarryTheCellPath) {
  Training<TwoLayers> training({"O2", DType::kF16});
  EXPECT_THAT(TrainError(*training.model, GoodBatches({5}, 1)),
              HasSubstr("twolayers/fc1: Dense expects 6 input features, got 5 (input tensor<8x5xf32>)"));
  EXPECT_THAT(std::string(training.model->Predict(Values({2, 5})).status().message()), HasSubstr("twolayers/fc1"));
  // The model still works.
  MPC_EXPECT_OK(training.model->Train(1, GoodBatches(kFeatures, 1)));
}

TEST(ModelErrors, LabelsMustFitTheLogits) {
  Training<TwoLayers> training({"O0", {}});
  EXPECT_THAT(TrainError(*training.model, Batches({{Values({2, 6}), Values({2, 4})}})),
              ::testing::AllOf(HasSubstr("tensor<2x3xf32>"), HasSubstr("tensor<2x4xf32>")));
  EXPECT_THAT(TrainError(*training.model, Batches({{Values({2, 6}), Tensor::Zeros({2}, DType::kI32)}})),
              HasSubstr("class indices need {.sparse = true}"));
  nn::SoftmaxCrossEntropyWithLogits sparse({.sparse = true, .reduction = "mean"});
  Model model(*training.network, sparse, *training.optimizer);
  EXPECT_THAT(TrainError(model), HasSubstr("expects integer class labels [N]"));
}

/// Uses an operation that has no derivative.
class Undifferentiable : public nn::Cell {
 public:
  MPC_CELL(Undifferentiable, fc)
  Tensor Construct(Tensor x) {
    x = fc(x);
    const Tensor condition = equal(x, maximum(x, x * 0.0));
    return internal::Trace::Current()->Emit("select", {condition, x, x * 0.1}, {})[0];
  }
  nn::Dense fc{6, 3};
};

TEST(ModelErrors, OperationWithoutADerivativeIsNamed) {
  Undifferentiable network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::SGD optimizer(network.TrainableParams());
  Model model(network, loss, optimizer);
  EXPECT_THAT(TrainError(model), ::testing::AllOf(HasSubstr("select"), HasSubstr("undifferentiable")));
}

TEST(ModelErrors, NanAtO0IsReportedWithItsStep) {
  Training<TwoLayers> training({"O0", {}});
  std::vector<data::Row> batches = {MakeBatch(kFeatures, 4, 0),
                                    testing::WithBadValue(MakeBatch(kFeatures, 4, 1), testing::kNan)};
  ::testing::internal::CaptureStderr();
  MPC_EXPECT_OK(training.model->Train(1, Batches(batches)));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("epoch 1 step 2: the loss is nan"));
}

TEST(Model, FreshModelsOfAFreshSeedAreEqual) {
  Training<TwoLayers> first({"O0", {}});
  Training<TwoLayers> second({"O0", {}});
  EXPECT_EQ(testing::StateOf(*first.model), testing::StateOf(*second.model));
  EXPECT_FALSE(first.model->State("no.such").defined());
  EXPECT_EQ(first.model->State("fc1.weight").shape(), Shape({8, 6}));
}

}  // namespace
}  // namespace mpc
