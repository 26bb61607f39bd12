// Layers of transformers. Expected numbers are those of PyTorch 2.15 in f32, from the same Parameters and inputs.
#include "frontend/nn/transformer_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::Values;

/// Sums of at most 12 products of numbers below 2, and two normalisations: some ten roundings of 2^-23, which a
/// division by a deviation of at least 1/4 makes larger.
constexpr float kLayerTolerance = 0x1p-17f;

/// Eighths from -6 to 6 whose order depends on `k`.
Tensor Eighths(const Shape& shape, std::int64_t k) {
  std::vector<float> values(static_cast<std::size_t>(NumElements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((static_cast<std::int64_t>(i) * 5 + k) % 13 - 6) / 8;
  }
  return Tensor::From(values, shape);
}

/// Gives every Parameter sixteenths from -5 to 5, which depend on its place among the sorted names.
void Fill(nn::Cell& cell) {
  auto parameters = cell.ParametersAndNames();
  std::sort(parameters.begin(), parameters.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t k = 0; k < parameters.size(); ++k) {
    Parameter& parameter = parameters[k].second;
    std::vector<float> values(static_cast<std::size_t>(NumElements(parameter.shape())));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = (static_cast<float>((i * 7 + 3 * k) % 11) - 5) / 16;
    }
    MPC_ASSERT_OK(parameter.SetData(Tensor::From(values, parameter.shape())));
  }
}

nn::TransformerLayerOptions WithoutDropout(const std::string& activation, bool norm_first) {
  return {.dim_feedforward = 6, .dropout = 0, .activation = activation, .norm_first = norm_first};
}

const Tensor& X() {
  static const Tensor* const x = new Tensor(Eighths({2, 3, 4}, 1));
  return *x;
}

const Tensor& Memory() {
  static const Tensor* const memory = new Tensor(Eighths({2, 5, 4}, 4));
  return *memory;
}

Tensor Mask(const std::vector<bool>& left_out, const Shape& shape) {
  std::vector<float> values(left_out.begin(), left_out.end());
  return greater(Tensor::From(values, shape), Tensor::Scalar(0.5f));
}

/// The last key of the first sample is left out, and later positions are.
nn::AttentionMasks Masks() {
  return {.key_padding_mask = Mask({false, false, true, false, false, false}, {2, 3}),
          .attn_mask = Mask({false, true, true, false, false, true, false, false, false}, {3, 3})};
}

TEST(TransformerEncoderLayer, IsPyTorchs) {
  nn::TransformerEncoderLayer behind(4, 2, WithoutDropout("relu", false));
  Fill(behind);
  EXPECT_THAT(behind(X()).ToFloats(),
              Pointwise(FloatNear(kLayerTolerance),
                        {-0.07924588f, -0.1064159f,  0.03390635f, -0.2198978f,  -0.05505285f, -0.03779386f,
                         0.2332421f,   -0.2479595f,  -0.0789115f, -0.1064977f,  0.03380916f,  -0.219968f,
                         -0.021361f,   -0.03991283f, 0.2323262f,  -0.2676583f,  0.3023508f,   -0.1665351f,
                         0.06515297f,  -0.2430362f,  -0.0213244f, -0.03991506f, 0.2323266f,   -0.2676781f}));
  nn::TransformerEncoderLayer before(4, 2, WithoutDropout("gelu", true));
  Fill(before);
  EXPECT_THAT(before(X()).ToFloats(),
              Pointwise(FloatNear(kLayerTolerance),
                        {-0.2994551f,  -0.3869612f,  0.7027906f,  -0.3406719f, 0.6027731f,  -1.156547f,
                         -0.09073731f, 0.5422427f,   -0.1744551f, -0.2619612f, 0.8277906f,  -0.2156719f,
                         0.7066025f,   -1.026687f,   0.04057148f, 0.6679197f,  -0.0583888f, -0.1454868f,
                         -0.6858743f,  -0.08787973f, 0.8316025f,  -0.9016868f, 0.1655715f,  0.7929197f}));
}

TEST(TransformerEncoderLayer, ReadsWhatMasksLeave) {
  nn::TransformerEncoderLayer layer(4, 2, WithoutDropout("relu", true));
  Fill(layer);
  EXPECT_THAT(layer(X(), Masks()).ToFloats(),
              Pointwise(FloatNear(kLayerTolerance),
                        {-0.266079f,  -0.3584533f,  0.6809042f,  -0.3506165f, 0.6075009f,   -1.109289f,
                         -0.1177498f, 0.5427555f,   -0.1743401f, -0.2196034f, 0.8190871f,   -0.2238185f,
                         0.7003965f,  -0.9716426f,  0.02036437f, 0.6693186f,  -0.04027922f, -0.1102182f,
                         -0.7108163f, -0.09652497f, 0.8475275f,  -0.8590611f, 0.1343518f,   0.7927006f}));
  EXPECT_EQ(layer(X(), {}).ToFloats(), layer(X()).ToFloats());
  nn::TransformerLayerOptions options = WithoutDropout("relu", true);
  options.causal = true;
  nn::TransformerEncoderLayer causal(4, 2, options);
  Fill(causal);
  EXPECT_THAT(causal(X()).ToFloats(),
              Pointwise(FloatNear(kLayerTolerance),
                        layer(X(), {.key_padding_mask = {}, .attn_mask = Masks().attn_mask}).ToFloats()));
}

TEST(TransformerDecoderLayer, IsPyTorchs) {
  nn::TransformerDecoderLayer layer(4, 2, WithoutDropout("gelu", true));
  Fill(layer);
  EXPECT_THAT(
      layer(X(), Memory()).ToFloats(),
      Pointwise(FloatNear(kLayerTolerance),
                {-0.5780482f, -0.860237f,  1.425116f,  -0.6149464f, 0.3185768f, -1.606556f, 0.6735656f, 0.2448142f,
                 -0.4530482f, -0.735237f,  1.550116f,  -0.4899463f, 0.4095587f, -1.525658f, 0.9543848f, 0.3035228f,
                 -0.3645405f, -0.6535697f, 0.2054404f, -0.4301145f, 0.5345587f, -1.400658f, 1.079385f,  0.4285228f}));
}

TEST(TransformerDecoderLayer, ReadsWhatMasksLeave) {
  nn::TransformerDecoderLayer layer(4, 2, WithoutDropout("relu", true));
  Fill(layer);
  const Tensor padding = Mask({false, false, false, false, true, false, true, false, false, false}, {2, 5});
  EXPECT_THAT(
      layer(X(), Memory(), Masks(), {.key_padding_mask = padding, .attn_mask = {}}).ToFloats(),
      Pointwise(FloatNear(kLayerTolerance),
                {-0.5649363f, -0.8245044f, 1.436835f,  -0.6146091f, 0.292407f,  -1.551456f, 0.7173821f, 0.2330987f,
                 -0.4755012f, -0.6935148f, 1.578156f,  -0.4871053f, 0.3861752f, -1.487217f, 1.037161f,  0.273519f,
                 -0.3633624f, -0.6287566f, 0.2652635f, -0.4475948f, 0.5241191f, -1.362408f, 1.156834f,  0.3987014f}));
}

TEST(TransformerEncoder, IsPyTorchs) {
  nn::TransformerEncoder stack(4, 2, 2, WithoutDropout("relu", true), /*has_norm=*/true);
  Fill(stack);
  EXPECT_THAT(
      stack(X()).ToFloats(),
      Pointwise(FloatNear(kLayerTolerance),
                {-0.1242781f, -0.1875f, -0.1356165f, 0.03991793f, 0.275448f,  -0.1875f, 0.4066529f, 0.2029653f,
                 -0.1242781f, -0.1875f, -0.1356165f, 0.03991793f, 0.2479165f, -0.1875f, 0.4051407f, 0.220474f,
                 0.137135f,   -0.1875f, 0.6706688f,  0.175958f,   0.2479165f, -0.1875f, 0.4051407f, 0.220474f}));
  EXPECT_TRUE(stack.GetParameter("layers.1.self_attn.in_proj.weight").ok());
  EXPECT_TRUE(stack.GetParameter("norm.gamma").ok());
  nn::TransformerEncoder bare(4, 2, 2, WithoutDropout("relu", true));
  EXPECT_FALSE(bare.GetParameter("norm.gamma").ok());
  EXPECT_NE(bare.GetParameter("layers.0.linear1.weight")->Value()->ToFloats(),
            bare.GetParameter("layers.1.linear1.weight")->Value()->ToFloats());
}

TEST(TransformerDecoder, CallsItsLayersInTurn) {
  nn::TransformerDecoder stack(4, 2, 2, WithoutDropout("gelu", false));
  Tensor expected = X();
  for (const nn::AnyCell& layer : stack.layers) {
    expected = static_cast<nn::TransformerDecoderLayer&>(layer.cell())(expected, Memory(), Masks());
  }
  EXPECT_THAT(stack(X(), Memory(), Masks()).ToFloats(), Pointwise(FloatNear(kLayerTolerance), expected.ToFloats()));
}

TEST(TransformerLayers, HaveTheDerivativesOfDifferences) {
  nn::TransformerEncoder encoder(4, 2, 1, WithoutDropout("gelu", true), /*has_norm=*/true);
  Fill(encoder);
  testing::ExpectGradient([&](const Tensor& x) { return encoder(x, Masks()); }, X(), 4e-3f, &encoder);
  nn::TransformerDecoderLayer decoder(4, 2, WithoutDropout("gelu_tanh", false));
  Fill(decoder);
  testing::ExpectGradient([&](const Tensor& memory) { return decoder(X(), memory); }, Memory(), 4e-3f, &decoder);
}

TEST(TransformerLayers, DropWhileTraining) {
  nn::TransformerEncoderLayer layer(4, 2, {.dim_feedforward = 6, .dropout = 0.5});
  const std::vector<float> still = layer(X()).ToFloats();
  EXPECT_EQ(layer(X()).ToFloats(), still);
  layer.SetTrain();
  EXPECT_NE(layer(X()).ToFloats(), still);
}

TEST(TransformerLayers, RefuseShapesThatDoNotFit) {
  nn::TransformerEncoderLayer encoder(4, 2, WithoutDropout("relu", false));
  EXPECT_THAT(ErrorOf(encoder(Values({2, 3, 5}))),
              HasSubstr("TransformerEncoderLayer expects x [N, T, 4], alone or with two masks, got tensor<2x3x5xf32>"));
  EXPECT_THAT(ErrorOf(encoder(X(), X())), HasSubstr("got tensor<2x3x4xf32>, tensor<2x3x4xf32>"));
  nn::TransformerDecoderLayer decoder(4, 2, WithoutDropout("relu", false));
  EXPECT_THAT(ErrorOf(decoder(X())),
              HasSubstr("TransformerDecoderLayer expects x [N, T, 4] and memory [N, S, 4], alone or with two masks for "
                        "each, got tensor<2x3x4xf32>"));
  EXPECT_THAT(ErrorOf(nn::TransformerEncoder(4, 2, 0)(X())),
              HasSubstr("TransformerEncoder takes 1 layer or more and 1 tensor or more, got 0 and 1"));
  EXPECT_THAT(ErrorOf(nn::TransformerEncoderLayer(4, 3)(X())), HasSubstr("num_heads = 3 must divide embed_dim = 4"));
}

/// A classifier of sequences [N, T, 6].
class SequenceClassifier : public nn::Cell {
 public:
  MPC_CELL(SequenceClassifier, encoder, head)
  Tensor Construct(const Tensor& x) { return head(reduce_mean(encoder(x), {1})); }
  nn::TransformerEncoder encoder{6, 2, 2, {.dim_feedforward = 8, .dropout = 0.1, .norm_first = true}, true};
  nn::Dense head{6, 2};
};

TEST(TransformerLayers, TrainInLowPrecision) {
  SetSeed(1);
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 64; ++i) {
    const Tensor x = Values({5, 6}, i);
    rows.push_back({x, Tensor::Scalar<std::int32_t>(x.ToFloats()[12] > 0 ? 1 : 0)});
  }
  SequenceClassifier net;
  nn::CrossEntropyLoss loss;
  nn::Adam opt(net.TrainableParams(), {.learning_rate = 0.02});
  Model model(net, loss, opt, {.metrics = {"accuracy"}, .amp_level = "O2"});
  auto train_set = data::GeneratorDataset(rows, {"x", "label"}).Batch(16);
  MPC_ASSERT_OK(model.Train(40, train_set));
  const auto metrics = model.Eval(train_set);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_GT(metrics->at("accuracy"), 0.9);
}

}  // namespace
}  // namespace mpc
