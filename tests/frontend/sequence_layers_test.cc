// Layers and functions of sequence and generator networks.
#include "frontend/nn/sequence_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "frontend/graph/composed_ops.h"
#include "tests/frontend/error_of.h"
#include "tests/training/probe.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::Level;
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
  EXPECT_THAT(ErrorOf(norm(Values({1, 3, 2, 2}))),
              HasSubstr("GroupNorm expects a rank-3 or rank-4 tensor with 2 channels"));
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

/// An attention of 2 heads over 4 features, and its inputs: 2 samples, 3 queries, 5 keys.
struct TwoSequences {
  TwoSequences() { SetSeed(3); }

  /// The heads that part `i` of in_proj makes of x: queries, keys or values.
  Tensor Heads(const Tensor& x, std::int64_t i) {
    const auto part = [i](const Parameter& parameter) {
      const Tensor all = *parameter.Value();
      Shape starts(all.shape().size(), 0), sizes = all.shape();
      starts[0] = 4 * i;
      sizes[0] = 4;
      return slice(all, starts, sizes);
    };
    const Tensor y = matmul(reshape(x, {-1, 4}), part(attention.in_proj.weight), part(attention.in_proj.bias),
                            {.transpose_b = true});
    return transpose(reshape(y, {2, x.dim(1), 2, 2}), {0, 2, 1, 3});
  }
  /// out_proj of heads, whose bias is zero.
  Tensor Projected(const Tensor& heads) {
    const Tensor joined = reshape(transpose(heads, {0, 2, 1, 3}), {6, 4});
    return matmul(joined, *attention.out_proj.weight.Value(), {}, {.transpose_b = true});
  }

  nn::MultiheadAttention attention{4, 2};
  Tensor query = Values({2, 3, 4}, 1);
  Tensor key = Values({2, 5, 4}, 2);
  Tensor value = Values({2, 5, 4}, 3);
};

TEST(MultiheadAttention, OfOneSequenceGivesThatOfThreeEqualOnes) {
  TwoSequences given;
  const Tensor& x = given.query;
  EXPECT_THAT(given.attention(x, x, x).ToFloats(), Pointwise(FloatNear(1e-6f), given.attention(x).ToFloats()));
  nn::MultiheadAttention causal(4, 2, {.has_bias = false, .causal = true});
  EXPECT_THAT(causal(x, x, x).ToFloats(), Pointwise(FloatNear(1e-6f), causal(x).ToFloats()));
}

TEST(MultiheadAttention, ReadsAnotherSequence) {
  TwoSequences given;
  ASSERT_TRUE(given.attention.in_proj.bias.SetData(Values({12}, 5)).ok());
  const Tensor expected = given.Projected(scaled_dot_product_attention(
      given.Heads(given.query, 0), given.Heads(given.key, 1), given.Heads(given.value, 2)));
  const Tensor y = given.attention(given.query, given.key, given.value);
  EXPECT_EQ(y.shape(), Shape({2, 3, 4}));
  EXPECT_THAT(y.ToFloats(), Pointwise(FloatNear(1e-6f), expected.ToFloats()));
}

TEST(MultiheadAttention, PaddedKeysAreNotRead) {
  TwoSequences given;
  // The last two keys of the second sample are padding.
  const Tensor padding = Tensor::From({false, false, false, false, false, false, false, false, true, true}, {2, 5});
  const Tensor masked = given.attention(given.query, given.key, given.value, {.key_padding_mask = padding});
  std::vector<float> changed = given.value.ToFloats();
  for (std::size_t i = 32; i < 40; ++i) changed[i] += 1;
  const Tensor other = Tensor::From(changed, {2, 5, 4});
  EXPECT_EQ(masked.ToFloats(),
            given.attention(given.query, given.key, other, {.key_padding_mask = padding}).ToFloats());
  EXPECT_NE(given.attention(given.query, given.key, given.value).ToFloats(),
            given.attention(given.query, given.key, other).ToFloats());
}

/// A mask for each of 3 queries and 5 keys: true where the key stands behind the query.
Tensor LaterKeys() {
  std::vector<std::int32_t> later;
  for (std::int32_t i = 0; i < 15; ++i) later.push_back(i % 5 > i / 5);
  return Tensor::From(later, {3, 5}).To(DType::kBool);
}

TEST(MultiheadAttention, MasksOfQueriesJoinThoseOfKeys) {
  TwoSequences given;
  const auto masked = [&](const nn::AttentionMasks& masks) {
    return given.attention(given.query, given.key, given.value, masks).ToFloats();
  };
  // A query reads no key behind its own position.
  const Tensor attn_mask = LaterKeys();
  const std::vector<float> y = masked({.attn_mask = attn_mask});
  // The same mask for each of two samples and two heads.
  const Tensor each = tile(reshape(attn_mask, {1, 3, 5}), {4, 1, 1});
  EXPECT_EQ(masked({.attn_mask = each}), y);
  // A padded first key leaves nothing to the first query of the first sample.
  std::vector<std::int32_t> padding(10, 0);
  padding[0] = 1;
  const Tensor key_padding_mask = Tensor::From(padding, {2, 5}).To(DType::kBool);
  const std::vector<float> both = masked({.key_padding_mask = key_padding_mask, .attn_mask = attn_mask});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(both[i], 0) << "out_proj of zeros, with a bias of zeros";
  EXPECT_TRUE(std::equal(both.begin() + 12, both.end(), y.begin() + 12)) << "the second sample has no padding";
  EXPECT_EQ(masked({}), given.attention(given.query, given.key, given.value).ToFloats());
}

TEST(MultiheadAttention, FloatingMasksAreAddedToTheScores) {
  TwoSequences given;
  const Tensor attn_mask = Values({4, 3, 5}, 6), key_padding_mask = Values({2, 5}, 7);
  const Tensor scores = batch_matmul(given.Heads(given.query, 0), given.Heads(given.key, 1), {.transpose_b = true}) *
                            (1 / std::sqrt(2.0)) +
                        reshape(attn_mask, {2, 2, 3, 5}) + reshape(key_padding_mask, {2, 1, 1, 5});
  const Tensor expected = given.Projected(batch_matmul(softmax(scores), given.Heads(given.value, 2)));
  const Tensor y = given.attention(given.query, given.key, given.value,
                                   {.key_padding_mask = key_padding_mask, .attn_mask = attn_mask});
  EXPECT_THAT(y.ToFloats(), Pointwise(FloatNear(1e-6f), expected.ToFloats()));
}

TEST(MultiheadAttention, AFloatingMaskOfMinusInfinityLeavesOutAsATrueOne) {
  TwoSequences given;
  const auto masked = [&](const nn::AttentionMasks& masks) {
    return given.attention(given.query, given.key, given.value, masks).ToFloats();
  };
  const Tensor later =
      where(LaterKeys(), Tensor::Scalar(-std::numeric_limits<float>::infinity()), Tensor::Scalar(0.0f));
  EXPECT_THAT(masked({.attn_mask = later}), Pointwise(FloatNear(1e-6f), masked({.attn_mask = LaterKeys()})));
  // A mask of zeros beside one of truth values changes nothing but the way, and a row without keys is zero on both.
  const Tensor padding = Tensor::From({true, true, true, true, true, false, false, false, true, true}, {2, 5});
  const std::vector<float> plain = masked({.key_padding_mask = padding});
  const std::vector<float> added = masked({.key_padding_mask = padding, .attn_mask = Tensor::Zeros({3, 5})});
  EXPECT_THAT(added, Pointwise(FloatNear(1e-6f), plain));
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(added[i], 0) << "out_proj of zeros, with a bias of zeros";
}

/// Network of one head whose projections are identities.
class PlainAttention : public nn::Cell {
 public:
  MPC_CELL(PlainAttention, attention)
  explicit PlainAttention(bool causal) : attention(2, 1, {.has_bias = false, .causal = causal}) {
    EXPECT_TRUE(attention.in_proj.weight
                    .SetData(Tensor::From({1.f, 0.f, 0.f, 1.f, 1.f, 0.f, 0.f, 1.f, 1.f, 0.f, 0.f, 1.f}, {6, 2}))
                    .ok());
    EXPECT_TRUE(attention.out_proj.weight.SetData(Tensor::From({1.f, 0.f, 0.f, 1.f}, {2, 2})).ok());
  }
  Tensor Construct(Tensor x, Tensor padding, Tensor added) {
    return attention(x, x, x, {.key_padding_mask = padding, .attn_mask = added});
  }
  nn::MultiheadAttention attention;
};

// torch.nn.MultiheadAttention gives these numbers: what is left out stays below whatever is added to the others.
TEST(MultiheadAttention, AVeryLowFloatingMaskIsAboveWhatIsLeftOut) {
  const Tensor x = Tensor::From({1.f, 2.f, 3.f, 4.f}, {1, 2, 2});
  PlainAttention causal(true), padded(false);
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    Model first(causal, {.amp_level = level}), second(padded, {.amp_level = level});
    for (const float low : {-1e4f, -1e9f}) {
      const absl::StatusOr<Tensor> y =
          first.Predict(x, Tensor::From({false, false}, {1, 2}), Tensor::From({low, low, low, 0.f}, {2, 2}));
      ASSERT_TRUE(y.ok()) << y.status();
      EXPECT_EQ(y->ToFloats(), (std::vector<float>{1, 2, 3, 4})) << level << " " << low;
      const absl::StatusOr<Tensor> z =
          second.Predict(x, Tensor::From({false, true}, {1, 2}), Tensor::Full({2, 2}, low));
      ASSERT_TRUE(z.ok()) << z.status();
      EXPECT_EQ(z->ToFloats(), (std::vector<float>{1, 2, 1, 2})) << level << " " << low;
    }
  }
}

/// Attention of one head over one feature, whose scores are -x[t] x[s]. At this rate dropout leaves every weight.
class SteepAttention : public nn::Cell {
 public:
  MPC_CELL(SteepAttention, attention)
  SteepAttention(bool causal, Tensor padding)
      : attention(1, 1, {.has_bias = false, .causal = causal, .dropout = 1e-9}), padding_(std::move(padding)) {
    EXPECT_TRUE(attention.in_proj.weight.SetData(Tensor::From({-1.f, 1.f, 1.f}, {3, 1})).ok());
    EXPECT_TRUE(attention.out_proj.weight.SetData(Tensor::From({1.f}, {1, 1})).ok());
  }
  Tensor Construct(Tensor x) {
    return padding_.defined() ? attention(x, x, x, {.key_padding_mask = padding_}) : attention(x);
  }
  nn::MultiheadAttention attention;

 private:
  Tensor padding_;
};

/// The loss of a step of rate 1/32, and the weights behind it. The loss is the sum of what each query reads, and so is
/// the gradient of the last two weights. That of the first two is 0 where each query reads one position.
std::vector<float> TrainedOnce(const Level& level, bool causal, const Tensor& padding, const Tensor& x) {
  SteepAttention network(causal, padding);
  testing::SumLoss loss;
  nn::SGD optimizer(network.TrainableParams(), {.learning_rate = 1. / 32});
  Model model(network, loss, optimizer,
              {.amp_level = level.level, .loss_scale_manager = nullptr, .amp_dtype = level.dtype});
  testing::LossRecorder recorder;
  MPC_EXPECT_OK(model.Train(1, testing::Batches({{x, Tensor::Zeros({1})}}), {recorder}));
  std::vector<float> result = recorder.losses;
  for (const Parameter& weight : {network.attention.in_proj.weight, network.attention.out_proj.weight}) {
    const std::vector<float> values = weight.Value()->ToFloats();
    result.insert(result.end(), values.begin(), values.end());
  }
  return result;
}

std::vector<float> ExpectedOfSum(float sum) { return {sum, -1, 1, 1 - sum / 32, 1 - sum / 32}; }
class MaskedDropout : public ::testing::TestWithParam<Level> {};

TEST_P(MaskedDropout, ReadsWhatMasksLeave) {
  const Tensor x = Tensor::From({40.f, 30.f, 10.f, 40.f, 30.f, 10.f}, {2, 3, 1});
  EXPECT_EQ(TrainedOnce(GetParam(), true, {}, x), ExpectedOfSum(2 * (40 + 30 + 10)));
  // The second sample may read nothing.
  const Tensor padding = Tensor::From({false, true, false, true, true, true}, {2, 3});
  EXPECT_EQ(TrainedOnce(GetParam(), false, padding, x), ExpectedOfSum(3 * 10));
}

// Scores of -90000 and less are below -60000, which the score of what is left out once was.
TEST_P(MaskedDropout, ReadsVeryLowScores) {
  if (GetParam().dtype == DType::kF16) return;  // these scores are infinite
  const Tensor x = Tensor::From({400.f, 300.f, 352.f}, {1, 3, 1});
  EXPECT_EQ(TrainedOnce(GetParam(), true, {}, x), ExpectedOfSum(400 + 300 + 300));
  EXPECT_EQ(TrainedOnce(GetParam(), false, Tensor::From({false, true, false}, {1, 3}), x), ExpectedOfSum(3 * 352));
}

INSTANTIATE_TEST_SUITE_P(Levels, MaskedDropout, ::testing::ValuesIn(testing::AllLevels()), testing::LevelName);

TEST(MultiheadAttention, CausalWithAFloatingMaskReadsTheSamePositions) {
  SetSeed(3);
  nn::MultiheadAttention causal(4, 2, {.causal = true});
  // As many queries as keys, and fewer of them.
  for (const std::int64_t queries : {5, 3}) {
    const Tensor query = Values({2, queries, 4}, 1), key = Values({2, 5, 4}, 2);
    const Tensor added = causal(query, key, key, {.attn_mask = Tensor::Zeros({queries, 5})});
    EXPECT_THAT(added.ToFloats(), Pointwise(FloatNear(1e-6f), causal(query, key, key).ToFloats())) << queries;
  }
}

TEST(MultiheadAttention, DropoutZeroesWeightsWhileTrainingAlone) {
  SetSeed(3);
  nn::MultiheadAttention attention(4, 1, {.has_bias = false, .dropout = 0.5});
  std::vector<float> identity(3 * 4 * 4, 0.0f);
  for (std::size_t i = 0; i < 12; ++i) identity[i * 4 + i % 4] = 1;
  ASSERT_TRUE(attention.in_proj.weight.SetData(Tensor::From(identity, {12, 4})).ok());
  identity.resize(16);
  ASSERT_TRUE(attention.out_proj.weight.SetData(Tensor::From(identity, {4, 4})).ok());
  // Values are unit vectors, so that the result is the weights.
  const Tensor query = Values({1, 64, 4}, 1), key = Values({1, 4, 4}, 2), value = Tensor::From(identity, {1, 4, 4});
  const std::vector<float> weights = attention(query, key, value).ToFloats();
  attention.SetTrain();
  const std::vector<float> dropped = attention(query, key, value).ToFloats();
  std::size_t zeros = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    zeros += dropped[i] == 0;
    EXPECT_NEAR(dropped[i], dropped[i] == 0 ? 0 : 2 * weights[i], 1e-5) << i;
  }
  // Six deviations of 256 draws are 48.
  EXPECT_NEAR(static_cast<double>(zeros), 128, 48);
  EXPECT_NE(attention(query, key, value).ToFloats(), dropped) << "each call draws anew";
}

TEST(MultiheadAttention, TakesKeysAndValuesOfOtherWidths) {
  TwoSequences given;
  nn::MultiheadAttention attention(4, 2, {.kdim = 3, .vdim = 5});
  std::vector<std::string> names;
  for (const auto& [name, parameter] : attention.ParametersAndNames()) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("in_proj.bias", "q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight",
                                 "out_proj.bias"));
  EXPECT_EQ(attention.k_proj_weight.shape(), Shape({4, 3}));
  EXPECT_EQ(attention.v_proj_weight.shape(), Shape({4, 5}));
  // The other attention reads keys and values that are made with the weights before, and keeps them.
  const Tensor key = Values({2, 5, 3}, 2), value = Values({2, 5, 5}, 3);
  std::vector<float> in_proj = attention.q_proj_weight.Value()->ToFloats();
  for (std::size_t i = 0; i < 32; ++i) in_proj.push_back(i % 16 % 5 == 0 ? 1.0f : 0.0f);  // 4x4 identities
  ASSERT_TRUE(given.attention.in_proj.weight.SetData(Tensor::From(in_proj, {12, 4})).ok());
  ASSERT_TRUE(given.attention.out_proj.weight.SetData(*attention.out_proj.weight.Value()).ok());
  const auto made = [](const Tensor& x, const Parameter& weight) {
    return reshape(matmul(reshape(x, {10, -1}), *weight.Value(), {}, {.transpose_b = true}), {2, 5, 4});
  };
  const Tensor expected =
      given.attention(given.query, made(key, attention.k_proj_weight), made(value, attention.v_proj_weight));
  EXPECT_THAT(attention(given.query, key, value).ToFloats(), Pointwise(FloatNear(1e-6f), expected.ToFloats()));
  EXPECT_THAT(ErrorOf(attention(given.query)),
              HasSubstr("MultiHeadAttention with kdim = 3 and vdim = 5 takes query, key and value, got one tensor"));
  EXPECT_THAT(ErrorOf(attention(given.query, value, key)),
              HasSubstr("MultiHeadAttention expects [N, T, 3], got tensor<2x5x5xf32>"));
  EXPECT_THAT(ErrorOf(attention(given.query, key, Values({2, 4, 5}))),
              HasSubstr("MultiHeadAttention expects query [N, T, 4] with key [N, S, 3] and value [N, S, 5]"));
}

TEST(MultiheadAttention, RefusesMasksThatDoNotFit) {
  TwoSequences given;
  const auto error = [&](const nn::AttentionMasks& masks) {
    return ErrorOf(given.attention(given.query, given.key, given.value, masks));
  };
  EXPECT_THAT(error({.attn_mask = Tensor::Zeros({3, 5}, DType::kI32)}),
              HasSubstr("MultiHeadAttention takes a mask of i1, true where a position is left out, or a floating one, "
                        "which is added to the scores, got attn_mask tensor<3x5xi32>"));
  EXPECT_THAT(error({.attn_mask = Values({5, 3})}),
              HasSubstr("MultiHeadAttention expects attn_mask of shape 3x5 or 4x3x5, got tensor<5x3xf32>"));
  EXPECT_THAT(error({.attn_mask = Tensor::Zeros({5, 3}, DType::kBool)}),
              HasSubstr("MultiHeadAttention expects attn_mask of shape 3x5 or 4x3x5, got tensor<5x3xi1>"));
  EXPECT_THAT(error({.key_padding_mask = Tensor::Zeros({2, 3}, DType::kBool)}),
              HasSubstr("MultiHeadAttention expects key_padding_mask of shape 2x5, got tensor<2x3xi1>"));
  EXPECT_THAT(ErrorOf(given.attention(given.query, given.key, given.query)),
              HasSubstr("MultiHeadAttention expects query [N, T, 4] with key and value [N, S, 4]"));
  EXPECT_THAT(ErrorOf(given.attention(given.query, given.key)),
              HasSubstr("MultiHeadAttention takes x, or query, key and value, with or without two masks, got 2"));
}

/// The derivative of a sum over attention with in_proj's weight.
class AttentionStep : public nn::TrainingStep {
 public:
  MPC_CELL(AttentionStep, attention)
  Tensor Construct(Tensor query, Tensor key, Tensor mask) {
    const Tensor y = attention(query, key, key * key, {.key_padding_mask = mask});
    return ops::Backward(reduce_sum(y * Values({2, 3, 4}, 9)), {attention.in_proj.weight})[0];
  }
  nn::MultiheadAttention attention{4, 2};
};

/// The derivatives beside differences, with a mask of 2 samples of 5 keys.
void ExpectDerivatives(const Tensor& mask) {
  SetSeed(3);
  AttentionStep step;
  const Tensor query = Values({2, 3, 4}, 1), key = Values({2, 5, 4}, 2);
  const Tensor gradient = step(query, key, mask);
  ASSERT_TRUE(gradient.status().ok()) << gradient.status();
  const Tensor value = key * key;
  const std::vector<float> weight = step.attention.in_proj.weight.Value()->ToFloats();
  const auto loss = [&](std::size_t i, float change) {
    std::vector<float> changed = weight;
    changed[i] += change;
    EXPECT_TRUE(step.attention.in_proj.weight.SetData(Tensor::From(changed, {12, 4})).ok());
    const std::vector<float> y = step.attention(query, key, value, {.key_padding_mask = mask}).ToFloats();
    const std::vector<float> factors = Values({2, 3, 4}, 9).ToFloats();
    return std::inner_product(y.begin(), y.end(), factors.begin(), 0.0);
  };
  for (const std::size_t i : {0, 7, 15, 16, 22, 31, 32, 40, 47}) {
    EXPECT_NEAR(gradient.ToFloats()[i], (loss(i, 0x1p-6f) - loss(i, -0x1p-6f)) / 0x1p-5, 1e-3) << i;
  }
}

TEST(MultiheadAttention, TrainsOnTwoSequences) {
  ExpectDerivatives(Tensor::From({false, true, false, false, false, false, false, false, true, true}, {2, 5}));
}

TEST(MultiheadAttention, TrainsWithAFloatingMask) { ExpectDerivatives(Values({2, 5}, 4)); }

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

TEST(LstmCell, ALowCellStateIsWidened) {
  const Tensor gates = Values({3, 20}, 1), state = cast(Values({3, 5}, 2), DType::kF16);
  const auto [h, c] = lstm_cell(gates, state);
  const auto [wide_h, wide_c] = lstm_cell(gates, cast(state, DType::kF32));
  EXPECT_EQ(c.dtype(), DType::kF32);
  EXPECT_EQ(c.ToFloats(), wide_c.ToFloats());
  EXPECT_EQ(h.ToFloats(), wide_h.ToFloats());
}

TEST(BceWithLogitsLoss, IsTheMeanOverElements) {
  nn::BCEWithLogitsLoss loss;
  const Tensor logits = Tensor::From({0.0f, 2.0f}, {2, 1});
  const Tensor labels = Tensor::From({1.0f, 0.0f}, {2, 1});
  EXPECT_NEAR(loss(logits, labels).Item<float>(), (std::log(2.0) - std::log(SigmoidOf(-2))) / 2, 1e-6);
}

}  // namespace
}  // namespace mpc
