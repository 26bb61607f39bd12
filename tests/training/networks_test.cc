// The published networks: their sizes, and that small ones learn at every level.
#include <gmock/gmock.h>

#include <algorithm>

#include "models/bert.h"
#include "models/dcgan.h"
#include "models/gpt2.h"
#include "models/registry.h"
#include "models/resnet.h"
#include "models/vit.h"
#include "tests/frontend/error_of.h"
#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

using ::testing::HasSubstr;

std::int64_t TrainedElements(nn::Cell& network) {
  std::int64_t count = 0;
  for (const Parameter& parameter : network.TrainableParams()) count += NumElements(parameter.shape());
  return count;
}

TEST(ParameterCounts, EqualThePublishedOnes) {
  models::ResNet18 resnet18;
  EXPECT_EQ(TrainedElements(resnet18), 11689512);
  models::ResNet50 resnet50;
  EXPECT_EQ(TrainedElements(resnet50), 25557032);
  models::Gpt2 gpt2;
  EXPECT_EQ(TrainedElements(gpt2), 124439808);
  models::Gpt2 gpt2_medium(models::Gpt2Config::Medium());
  EXPECT_EQ(TrainedElements(gpt2_medium), 354823168);
  models::Gpt2 gpt2_large(models::Gpt2Config::Large());
  EXPECT_EQ(TrainedElements(gpt2_large), 774030080);
  models::Gpt2 gpt2_xl(models::Gpt2Config::Xl());
  EXPECT_EQ(TrainedElements(gpt2_xl), 1557611200);
  models::Bert bert;
  EXPECT_EQ(TrainedElements(bert), 109514298);
  models::Vit vit_tiny(models::VitConfig::Tiny());
  EXPECT_EQ(TrainedElements(vit_tiny), 5717416);
  models::Vit vit_small(models::VitConfig::Small());
  EXPECT_EQ(TrainedElements(vit_small), 22050664);
  models::Vit vit_base;
  EXPECT_EQ(TrainedElements(vit_base), 86567656);
  models::Vit vit_large(models::VitConfig::Large());
  EXPECT_EQ(TrainedElements(vit_large), 304326632);
}

// Shapes follow from tracing alone: nothing is computed.
std::string PredictionType(const std::string& name, std::int64_t batch) {
  absl::StatusOr<std::unique_ptr<models::Workload>> workload = models::MakeWorkload(name);
  EXPECT_TRUE(workload.ok()) << workload.status();
  const Model model = (*workload)->MakePredictor({});
  absl::StatusOr<compiler::Module> module = model.TracePredict((*workload)->PredictInputs(batch));
  EXPECT_TRUE(module.ok()) << module.status();
  if (!module.ok()) return "";
  const std::string ir = module->Print();
  const std::size_t end = ir.rfind("return ");
  return ir.substr(ir.find(" : ", end) + 3, ir.find('\n', end) - ir.find(" : ", end) - 3);
}

TEST(Workloads, GiveTheShapesOfTheirTasks) {
  EXPECT_EQ(PredictionType("resnet18", 2), "tensor<2x10xf32>");
  EXPECT_EQ(PredictionType("resnet18-imagenet", 2), "tensor<2x1000xf32>");
  EXPECT_EQ(PredictionType("resnet50-imagenet", 2), "tensor<2x1000xf32>");
  EXPECT_EQ(PredictionType("gpt2", 2), "tensor<2048x50257xf32>");
  EXPECT_EQ(PredictionType("gpt2-tiny", 2), "tensor<64x256xf32>");
  EXPECT_EQ(PredictionType("bert", 2), "tensor<256x30522xf32>");
  EXPECT_EQ(PredictionType("bert-tiny", 2), "tensor<64x256xf32>");
  EXPECT_EQ(PredictionType("vit-tiny", 2), "tensor<2x10xf32>");
  EXPECT_EQ(PredictionType("vit_large_patch16_224", 2), "tensor<2x1000xf32>");
  EXPECT_EQ(PredictionType("dcgan-generator", 2), "tensor<2x1x16x16xf32>");
  EXPECT_EQ(PredictionType("dcgan-discriminator", 2), "tensor<2x1xf32>");
}

TEST(Workloads, AllTrace) {
  for (const std::string& name : models::WorkloadNames()) {
    SCOPED_TRACE(name);
    absl::StatusOr<std::unique_ptr<models::Workload>> workload = models::MakeWorkload(name);
    ASSERT_TRUE(workload.ok());
    nn::Momentum optimizer((*workload)->network().TrainableParams(), {.learning_rate = 0.01});
    const Model model = (*workload)->MakeModel(optimizer, {.amp_level = "O2"});
    EXPECT_TRUE(model.TraceTrainStep((*workload)->TrainInputs(2)).ok());
  }
}

TEST(Workloads, AnUnknownNameListsTheKnownOnes) {
  const absl::Status status = models::MakeWorkload("resnet").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              ::testing::HasSubstr("unknown model 'resnet'; choose bert, bert-tiny, bnnet, "));
}

TEST(Workloads, ARowIsAsLongAsTheContextOrAsItsNetworkIsMeasuredWith) {
  const auto tokens = [](const char* name, const models::WorkloadSizes& sizes) {
    return models::TokenSizesOf(name, sizes).value().tokens;
  };
  EXPECT_EQ(tokens("gpt2", {}), 1024);
  EXPECT_EQ(tokens("gpt2", {.context = 2048}), 2048);
  EXPECT_EQ(tokens("bert", {}), 128);
  EXPECT_EQ(tokens("bert", {.context = 64}), 64);
  EXPECT_EQ(tokens("bert", {.tokens = 300}), 300);
  EXPECT_FALSE(models::TokenSizesOf("lenet5").has_value());
  EXPECT_TRUE(models::PredictsNextToken("gpt2-tiny"));
  EXPECT_FALSE(models::PredictsNextToken("bert-tiny"));
}

constexpr models::BertConfig kSmallBert = {.vocabulary = 19, .context = 12, .width = 32, .layers = 2, .heads = 4};

TEST(Bert, ReadsBothWaysAndTellsSegmentsApart) {
  models::BertOfPairs network(kSmallBert);
  const Tensor ids = Tensor::From(std::vector<std::int32_t>{3, 1, 4, 1, 5, 9}, {1, 6});
  const Tensor other_end = Tensor::From(std::vector<std::int32_t>{3, 1, 4, 1, 5, 2}, {1, 6});
  const auto logits = [&](const Tensor& tokens, const std::vector<std::int32_t>& kinds) {
    return network(tokens, Tensor::From(kinds, {1, 6})).ToFloats();
  };
  const std::vector<float> first = logits(ids, {0, 0, 0, 0, 0, 0});
  ASSERT_EQ(first.size(), 6u * 19u);
  EXPECT_EQ(static_cast<models::Bert&>(network)(ids).ToFloats(), first) << "segment 0 where none is given";
  EXPECT_NE(logits(other_end, {0, 0, 0, 0, 0, 0})[0], first[0]) << "the first position reads the last one";
  EXPECT_NE(logits(ids, {0, 0, 0, 1, 1, 1})[0], first[0]);
}

TEST(Transformers, RefuseRowsBeyondTheirContext) {
  models::Gpt2 gpt2({.vocabulary = 19, .context = 12, .width = 32, .layers = 1, .heads = 4});
  models::Bert bert(kSmallBert);
  models::BertOfPairs pairs(kSmallBert);
  const Tensor fits = Tensor::Zeros({1, 12}, DType::kI32), longer = Tensor::Zeros({2, 13}, DType::kI64);
  EXPECT_TRUE(gpt2(fits).status().ok());
  EXPECT_TRUE(bert(fits).status().ok());
  EXPECT_THAT(ErrorOf(gpt2(longer)),
              HasSubstr("Gpt2 takes at most 12 tokens a row, got 13 (token numbers tensor<2x13xi64>)"));
  EXPECT_THAT(ErrorOf(bert(longer)), HasSubstr("Bert takes at most 12 tokens a row, got 13"));
  EXPECT_THAT(ErrorOf(pairs(longer, longer)), HasSubstr("BertOfPairs takes at most 12 tokens a row, got 13"));
}

TEST(MaskedTokenLoss, IsTheMeanOfTheMaskedPositions) {
  const Tensor logits = Values({4, 5}, 9);
  models::MaskedTokenLoss loss;
  nn::SoftmaxCrossEntropyWithLogits of_each({.sparse = true});
  const std::vector<float> each = of_each(logits, Tensor::From(std::vector<std::int32_t>{2, 0, 1, 4}, {4})).ToFloats();
  const Tensor masked = Tensor::From(std::vector<std::int32_t>{2, -1, -100, 4}, {2, 2});
  EXPECT_FLOAT_EQ(loss(logits, masked).Item<float>(), (each[0] + each[3]) / 2);
  EXPECT_FLOAT_EQ(loss(logits, masked.To(DType::kI64)).Item<float>(), (each[0] + each[3]) / 2);
  const Tensor all = Tensor::From(std::vector<std::int32_t>{2, 0, 1, 4}, {2, 2});
  EXPECT_FLOAT_EQ(loss(logits, all).Item<float>(), (each[0] + each[1] + each[2] + each[3]) / 4);
  EXPECT_TRUE(std::isnan(loss(logits, Tensor::From(std::vector<std::int32_t>{-1, -1, -1, -1}, {2, 2})).Item<float>()));
}

/// Losses of `steps` steps on one batch.
template <typename Network, typename Loss>
std::vector<float> LossesOn(const data::Row& batch, int steps, Network& network, Loss& loss, const Level& level,
                            double learning_rate) {
  nn::Adam optimizer(network.TrainableParams(), {.learning_rate = learning_rate});
  // A few steps are not enough for a dynamic scale to come down from its first value.
  const FixedLossScaleManager scale({.loss_scale = 128});
  Model model(network, loss, optimizer,
              {.amp_level = level.level,
               .loss_scale_manager = level.dtype == DType::kF16 ? LossScaleChoice(scale) : LossScaleChoice(),
               .amp_dtype = level.dtype});
  LossRecorder recorder;
  const absl::Status status = model.Train(steps, Batches({batch}), {recorder});
  EXPECT_TRUE(status.ok()) << status;
  return recorder.losses;
}

class LearnsAtLevel : public ::testing::TestWithParam<Level> {
 protected:
  void SetUp() override { SetSeed(11); }
};

void ExpectLowered(const std::vector<float>& losses, float factor) {
  ASSERT_FALSE(losses.empty());
  EXPECT_LT(losses.back(), factor * losses.front()) << ::testing::PrintToString(losses);
}

TEST_P(LearnsAtLevel, ResNetsOfBothBlocks) {
  const models::ResNetOptions options{
      .num_classes = 3, .num_channels = 1, .stem = models::ResNetStem::kCifar, .width = 4};
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  models::ResNet18 basic(options);
  ExpectLowered(LossesOn(MakeBatch({1, 16, 16}, 6, 0), 6, basic, loss, GetParam(), 0.003), 0.8f);
  models::ResNet<models::Bottleneck> bottleneck({1, 1, 1, 1}, options);
  ExpectLowered(LossesOn(MakeBatch({1, 16, 16}, 6, 0), 6, bottleneck, loss, GetParam(), 0.003), 0.8f);
}

TEST_P(LearnsAtLevel, Gpt2OverfitsOneBatch) {
  models::Gpt2 network({.vocabulary = 19, .context = 12, .width = 32, .layers = 2, .heads = 4, .dropout = 0.1});
  models::NextTokenLoss loss;
  std::vector<std::int32_t> tokens(2 * 13);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i * i % 19);
  std::vector<std::int32_t> ids, next;
  for (std::size_t row = 0; row < 2; ++row) {
    ids.insert(ids.end(), tokens.begin() + row * 13, tokens.begin() + row * 13 + 12);
    next.insert(next.end(), tokens.begin() + row * 13 + 1, tokens.begin() + row * 13 + 13);
  }
  const data::Row batch = {Tensor::From(ids, {2, 12}), Tensor::From(next, {2, 12})};
  const std::vector<float> losses = LossesOn(batch, 40, network, loss, GetParam(), 0.01);
  EXPECT_NEAR(losses.front(), std::log(19.0), 0.2) << "a new network predicts every token alike";
  ExpectLowered(losses, 0.5f);
}

TEST_P(LearnsAtLevel, BertFindsTheMaskedTokensOfOneBatch) {
  models::BertConfig config = kSmallBert;
  config.dropout = 0.1;
  models::Bert network(config);
  models::MaskedTokenLoss loss;
  constexpr std::int32_t kMask = 18;
  std::vector<std::int32_t> ids, labels;
  for (std::int32_t i = 0; i < 24; ++i) {
    const std::int32_t token = i * i % 17;
    const bool masked = i % 5 == 0;
    ids.push_back(masked ? kMask : token);
    labels.push_back(masked ? token : -1);
  }
  const data::Row batch = {Tensor::From(ids, {2, 12}), Tensor::From(labels, {2, 12})};
  const std::vector<float> losses = LossesOn(batch, 40, network, loss, GetParam(), 0.003);
  EXPECT_NEAR(losses.front(), std::log(19.0), 0.3) << "a new network predicts every token alike";
  ExpectLowered(losses, 0.5f);
}

TEST_P(LearnsAtLevel, DcganHalvesLearnTheirTasks) {
  const models::DcganOptions options{.image_size = 8, .latent_size = 6, .width = 4};
  const Tensor images = Values({6, 1, 8, 8}, 3);
  models::DcganDiscriminator discriminator(options);
  nn::BCEWithLogitsLoss judge;
  const Tensor real = Tensor::From({1.0f, 0.0f, 1.0f, 0.0f, 1.0f, 0.0f}, {6, 1});
  ExpectLowered(LossesOn({images, real}, 12, discriminator, judge, GetParam(), 0.01), 0.7f);
  models::DcganGenerator generator(options);
  nn::MSELoss distance;
  ExpectLowered(LossesOn({Values({6, 6}, 4), images}, 30, generator, distance, GetParam(), 0.02), 0.8f);
}

class DcganAtLevel : public ::testing::TestWithParam<const char*> {};

TEST_P(DcganAtLevel, BothOptimizersLearnFromThreeLosses) {
  SetSeed(11);
  const models::DcganOptions options{.image_size = 8, .latent_size = 6, .width = 4};
  models::DcganGenerator generator(options);
  models::DcganDiscriminator discriminator(options);
  nn::Adam optimizer_g(generator.TrainableParams(), {.learning_rate = 0.005, .beta1 = 0.5});
  nn::Adam optimizer_d(discriminator.TrainableParams(), {.learning_rate = 0.02, .beta1 = 0.5});
  // Scales start where the first steps do not overflow.
  MPC_ASSERT_OK(amp::Initialize({generator, discriminator}, {optimizer_g, optimizer_d},
                                {.level = GetParam(), .max_loss_scale = 1024, .num_losses = 3, .verbosity = 0}));
  models::DcganStep step(generator, discriminator, optimizer_g, optimizer_d);
  // Norms keep the statistics that they begin with, so that the loss of one batch says how far training is.
  step.SetTrain();
  generator.SetTrain(false);
  discriminator.SetTrain(false);
  const Tensor images = Values({8, 1, 8, 8}, 3);
  std::vector<float> judged, passed;
  for (int i = 0; i < 20; ++i) {
    const auto [of_discriminator, of_generator] = step(images, Values({8, 6}, 100 + i));
    MPC_ASSERT_OK(of_discriminator.status());
    judged.push_back(of_discriminator.Item<float>());
    passed.push_back(of_generator.Item<float>());
  }
  EXPECT_EQ(*optimizer_g.step(), 20);
  EXPECT_EQ(*optimizer_d.step(), 20);
  EXPECT_NEAR(judged.front(), 2 * std::log(2.0), 0.2) << "a new discriminator cannot tell";
  EXPECT_LT(judged.back(), 0.8f * judged.front()) << ::testing::PrintToString(judged);
  for (float loss : passed) EXPECT_TRUE(std::isfinite(loss));
}

INSTANTIATE_TEST_SUITE_P(Levels, DcganAtLevel, ::testing::Values("O0", "O1", "O2"),
                         [](const auto& info) { return std::string(info.param); });

/// The last hidden state of a sequence [N, T, 4], from zero states, classified.
class LstmClassifier : public nn::Cell {
 public:
  MPC_CELL(LstmClassifier, cell, fc)
  Tensor Construct(Tensor x) {
    Tensor h = ops::Fill(DType::kF32, {x.dim(0), 8}, 0);
    Tensor c = h;
    const std::vector<Tensor> steps = split(x, std::vector<std::int64_t>(static_cast<std::size_t>(x.dim(1)), 1), 1);
    for (const Tensor& step : steps) std::tie(h, c) = cell(reshape(step, {x.dim(0), 4}), h, c);
    return fc(h);
  }
  nn::LSTMCell cell{4, 8};
  nn::Dense fc{8, 3};
};

TEST_P(LearnsAtLevel, LstmOverThreeSteps) {
  LstmClassifier network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  ExpectLowered(LossesOn(MakeBatch({3, 4}, 6, 0), 30, network, loss, GetParam(), 0.05), 0.5f);
}

INSTANTIATE_TEST_SUITE_P(Levels, LearnsAtLevel,
                         ::testing::Values(Level{"O0", {}}, Level{"O1", DType::kBF16}, Level{"O2", DType::kF16},
                                           Level{"O3", DType::kBF16}),
                         LevelName);

// AMP-6.
TEST(RecurrentCells, AMP_6_MatrixProductsAreLowAndTheCellStateIsF32) {
  LstmClassifier network;
  nn::SoftmaxCrossEntropyWithLogits loss({.reduction = "mean"});
  nn::Adam optimizer(network.TrainableParams());
  const Model model(network, loss, optimizer, {.amp_level = "O1", .amp_dtype = DType::kBF16});
  absl::StatusOr<compiler::Module> module = model.TraceTrainStep({{DType::kF32, {6, 3, 4}}, {DType::kF32, {6, 3}}});
  ASSERT_TRUE(module.ok()) << module.status();
  MPC_ASSERT_OK(compiler::RunPasses(*module, model.compile_options(/*training=*/true), "amp", nullptr, nullptr));
  std::istringstream ir(module->Print());
  int products = 0;
  int cells = 0;
  for (std::string line; std::getline(ir, line);) {
    if (line.find("mpc.matmul") != std::string::npos && line.find("lstmclassifier/cell") != std::string::npos) {
      ++products;
      EXPECT_EQ(line.find("xf32>, tensor"), std::string::npos) << line;
    }
    if (line.find("= mpc.lstm_cell ") != std::string::npos) {
      ++cells;
      EXPECT_NE(line.find("(tensor<6x32xbf16>, tensor<6x8xf32>) -> (tensor<6x8xbf16>, tensor<6x8xf32>"),
                std::string::npos)
          << line;
    }
  }
  EXPECT_EQ(products, 6);
  EXPECT_EQ(cells, 3);
}

}  // namespace
}  // namespace mpc::testing
