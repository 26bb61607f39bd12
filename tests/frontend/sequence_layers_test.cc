// Layers and functions of sequence and generator networks.
#include "frontend/nn/sequence_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/frontend/error_of.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::Values;

float SigmoidOf(float x) { return 1 / (1 + std::exp(-x)); }

TEST(BatchMatmul, TransposesTheLastTwoAxes) {
  const Tensor a = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f}, {2, 1, 2});
  EXPECT_THAT(batch_matmul(a, a, {.transpose_b = true}).ToFloats(), ElementsAre(5, 25));
  EXPECT_EQ(batch_matmul(a, a, {.transpose_a = true}).shape(), Shape({2, 2, 2}));
}

TEST(Attention, TheScaleIsOneOverTheRootOfTheWidth) {
  const Tensor q = Values({1, 2, 3, 4}, 1);
  const Tensor k = Values({1, 2, 5, 4}, 2);
  const Tensor v = Values({1, 2, 5, 4}, 3);
  const Tensor implicit = scaled_dot_product_attention(q, k, v);
  EXPECT_EQ(implicit.shape(), Shape({1, 2, 3, 4}));
  EXPECT_EQ(implicit.ToFloats(), scaled_dot_product_attention(q, k, v, {}, {.scale = 0.5}).ToFloats());
  EXPECT_NE(implicit.ToFloats(), scaled_dot_product_attention(q, k, v, {}, {.scale = 1.0}).ToFloats());
}

// AMP-34, beside constants.
TEST(Attention, AMP_34_AFullyMaskedRowIsZero) {
  const Tensor x = Values({1, 1, 2, 4});
  const Tensor mask = equal(Tensor::From({0.0f, 0.0f, 0.0f, 1.0f}, {2, 2}), Tensor::Scalar(1.0f));
  const std::vector<float> y = scaled_dot_product_attention(x, x, x, mask).ToFloats();
  const std::vector<float> rows = x.ToFloats();
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(y[i], 0);
    EXPECT_EQ(y[4 + i], rows[4 + i]) << "the only position that the second row may read";
  }
}

TEST(LayerNorm, NormalisesTheTrailingAxes) {
  nn::LayerNorm norm({2, 2}, {.gamma_init = Constant(2), .beta_init = Constant(1)});
  EXPECT_EQ(norm.gamma.shape(), Shape({2, 2}));
  EXPECT_THAT(norm(Tensor::From({1.0f, 3.0f, 3.0f, 1.0f}, {1, 2, 2})).ToFloats(),
              Pointwise(FloatNear(1e-5f), {-1.0f, 3.0f, 3.0f, -1.0f}));
  EXPECT_THAT(ErrorOf(norm(Values({4, 2, 3}))),
              HasSubstr("LayerNorm expects trailing extents 2x2, got tensor<4x2x3xf32>"));
}

TEST(GroupNorm, OneGroupAChannelIsInstanceNorm) {
  nn::GroupNorm norm(2, 2);
  EXPECT_THAT(norm(Tensor::From({1.0f, 3.0f, 10.0f, 30.0f}, {1, 2, 1, 2})).ToFloats(),
              Pointwise(FloatNear(1e-4f), {-1.0f, 1.0f, -1.0f, 1.0f}));
  EXPECT_THAT(ErrorOf(norm(Values({1, 3, 2, 2}))), HasSubstr("GroupNorm expects a rank-4 tensor with 2 channels"));
  EXPECT_THAT(ErrorOf(nn::GroupNorm(4, 6)(Values({1, 6, 2, 2}))), HasSubstr("groups = 4 must divide the 6 channels"));
}

TEST(Conv2dTranspose, DefaultsAreMindSpores) {
  nn::Conv2dTranspose conv(3, 8, 5, {.stride = 2});
  EXPECT_EQ(conv.weight.shape(), Shape({3, 8, 5, 5}));
  EXPECT_FALSE(conv.bias.defined());
  EXPECT_EQ(conv(Values({1, 3, 4, 7})).shape(), Shape({1, 8, 8, 14})) << "pad_mode same";
  EXPECT_THAT(ErrorOf(conv(Values({1, 2, 4, 4}))), HasSubstr("Conv2dTranspose expects 3 input channels, got 2"));
}

TEST(Conv2dTranspose, PaddingShrinksAndOutputPaddingExtends) {
  nn::Conv2dTranspose conv(1, 1, 3,
                           {.stride = 2,
                            .pad_mode = "pad",
                            .padding = {1},
                            .output_padding = 1,
                            .has_bias = true,
                            .weight_init = Ones(),
                            .bias_init = Constant(0.5)});
  // One dimension of it: windows of three at 0, 2, ...; the first element falls to the padding.
  EXPECT_THAT(conv(Tensor::From({1.0f}, {1, 1, 1, 1})).ToFloats(), ElementsAre(1.5, 1.5, 1.5, 1.5));
}

TEST(MultiHeadAttention, CausalPositionsDoNotSeeLaterOnes) {
  SetSeed(3);
  nn::MultiHeadAttention attention(8, 2, {.causal = true});
  Tensor x = Values({1, 4, 8});
  std::vector<float> changed = x.ToFloats();
  for (std::size_t i = 16; i < 32; ++i) changed[i] += 1;
  const std::vector<float> before = attention(x).ToFloats();
  const std::vector<float> after = attention(Tensor::From(changed, {1, 4, 8})).ToFloats();
  for (std::size_t i = 0; i < 16; ++i) EXPECT_EQ(before[i], after[i]) << i;
  EXPECT_NE(before[31], after[31]);
}

TEST(MultiHeadAttention, HeadsAreNeighbouringFeatures) {
  // With identity projections each head attends over its own features of x.
  nn::MultiHeadAttention attention(4, 2, {.has_bias = false});
  std::vector<float> identity(3 * 4 * 4, 0.0f);
  for (std::size_t i = 0; i < 12; ++i) identity[i * 4 + i % 4] = 1;
  ASSERT_TRUE(attention.in_proj.weight.SetData(Tensor::From(identity, {12, 4})).ok());
  identity.resize(16);
  ASSERT_TRUE(attention.out_proj.weight.SetData(Tensor::From(identity, {4, 4})).ok());
  const Tensor x = Values({2, 3, 4});
  const Tensor heads = transpose(reshape(x, {2, 3, 2, 2}), {0, 2, 1, 3});
  const Tensor expected =
      reshape(transpose(scaled_dot_product_attention(heads, heads, heads), {0, 2, 1, 3}), {2, 3, 4});
  EXPECT_THAT(attention(x).ToFloats(), Pointwise(FloatNear(1e-6f), expected.ToFloats()));
}

TEST(MultiHeadAttention, RefusesShapesThatDoNotFit) {
  EXPECT_THAT(ErrorOf(nn::MultiHeadAttention(8, 2)(Values({4, 8}))),
              HasSubstr("MultiHeadAttention expects [N, T, 8], got tensor<4x8xf32>"));
  EXPECT_THAT(ErrorOf(nn::MultiHeadAttention(8, 3)(Values({1, 4, 8}))),
              HasSubstr("num_heads = 3 must divide embed_dim = 8"));
}

TEST(LstmCell, GatesAreInMindSporesOrder) {
  SetSeed(5);
  nn::LSTMCell cell(2, 1);
  EXPECT_EQ(cell.weight_ih.shape(), Shape({4, 2}));
  EXPECT_EQ(cell.weight_hh.shape(), Shape({4, 1}));
  const auto [h, c] =
      cell(Tensor::From({0.5f, -1.0f}, {1, 2}), Tensor::From({0.25f}, {1, 1}), Tensor::From({2.0f}, {1, 1}));
  std::vector<float> gates(4);
  for (std::size_t g = 0; g < 4; ++g) {
    const auto of = [](const Parameter& parameter, std::size_t i) { return parameter.Value()->ToFloats()[i]; };
    gates[g] = 0.5f * of(cell.weight_ih, 2 * g) - of(cell.weight_ih, 2 * g + 1) + 0.25f * of(cell.weight_hh, g) +
               of(cell.bias_ih, g) + of(cell.bias_hh, g);
  }
  const float next = SigmoidOf(gates[1]) * 2 + SigmoidOf(gates[0]) * std::tanh(gates[2]);
  EXPECT_NEAR(c.ToFloats()[0], next, 1e-6);
  EXPECT_NEAR(h.ToFloats()[0], SigmoidOf(gates[3]) * std::tanh(next), 1e-6);
  EXPECT_THAT(ErrorOf(cell(Values({1, 3}), Values({1, 1}), Values({1, 1})).first),
              HasSubstr("LSTMCell expects x [N, 2] and states h and c [N, 1], got tensor<1x3xf32>"));
}

TEST(BceWithLogitsLoss, IsTheMeanOverElements) {
  nn::BCEWithLogitsLoss loss;
  const Tensor logits = Tensor::From({0.0f, 2.0f}, {2, 1});
  const Tensor labels = Tensor::From({1.0f, 0.0f}, {2, 1});
  EXPECT_NEAR(loss(logits, labels).Item<float>(), (std::log(2.0) - std::log(SigmoidOf(-2))) / 2, 1e-6);
}

}  // namespace
}  // namespace mpc
