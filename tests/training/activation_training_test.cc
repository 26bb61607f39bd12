// Networks made of the activation functions, movement, selection and look-ups train at every level, and compute whole
// what their operations compute one by one.
#include <gmock/gmock.h>

#include "tests/training/training_support.h"

namespace mpc::testing {
namespace {

using ::testing::FloatNear;
using ::testing::Pointwise;

/// [N, 2, 6, 6] -> [N, 3]: images that are activated, joined, cut and padded between convolutions.
class CutImages : public nn::Cell {
 public:
  MPC_CELL(CutImages, conv, slopes, second, fc)
  Tensor Construct(Tensor x) {
    const Tensor y = conv(x);
    const Tensor joined = concat({silu(y), slopes(y), gelu(y, "tanh")}, 1);
    const std::vector<Tensor> pieces = split(slice(joined, {0, 0, 1, 0}, {joined.dim(0), 12, 5, 5}), {5, 7}, 1);
    const Tensor z = second(pad(pieces[1], {0, 0, 1, 0}, {0, 0, 0, 1}, 0.5));
    const Tensor chosen = where(greater(z, Tensor::Scalar(0.0f)), minimum(z, clamp(y, -1, 1)), leaky_relu(z));
    return fc(concat({reduce_max(chosen, {2, 3}), global_avg_pool2d(chosen)}, 1));
  }
  nn::Conv2d conv{2, 4, 3};
  nn::PReLU slopes{4};
  nn::Conv2d second{7, 4, 3};
  nn::Dense fc{8, 3};
};

/// [N, 6] -> [N, 3]: every element-wise function behind a dense layer.
class ManyFunctions : public nn::Cell {
 public:
  MPC_CELL(ManyFunctions, fc1, fc2)
  Tensor Construct(Tensor x) {
    const Tensor y = fc1(x);
    const Tensor positive = abs(y) + 0.5;
    return fc2(
        sum_n({log1p(positive), sin(y), cos(y), square(y), pow(positive, 1.5), gelu(y), nn::GELU()(y), floor(y)}));
  }
  nn::Dense fc1{6, 8};
  nn::Dense fc2{8, 3};
};

/// [N, 5] token indices -> [N, 3].
class Tokens : public nn::Cell {
 public:
  MPC_CELL(Tokens, embedding, fc)
  Tensor Construct(Tensor indices) {
    const Tensor counts = reduce_sum(one_hot(indices, 10), {1});
    return fc(concat({reduce_max(embedding(indices), {1}), counts}, 1));
  }
  nn::Embedding embedding{10, 8, {.embedding_table = Normal(1.0)}};
  nn::Dense fc{18, 3};
};

/// [N, 2, 6, 6] -> [N, 3]: what the front end makes of several operations, one behind the other.
class ComposedParts : public nn::Cell {
 public:
  MPC_CELL(ComposedParts, conv, norm, line, attention, scale, fc)
  Tensor Construct(Tensor x) {
    const Tensor y = mish(norm(conv(x)));
    const Tensor pooled = adaptive_avg_pool2d(y, {4, 5}) + adaptive_max_pool2d(elu(y), {4, 5});
    const Tensor sequence = einsum("ncl->nlc", {softplus(line(reshape(pooled, {x.dim(0), 4, 20})))});
    const Tensor query = slice(sequence, {0, 0, 0}, {x.dim(0), 5, 8});
    // A query reads the first positions up to its own.
    const Tensor later = equal(tril(ops::Fill(DType::kF32, {5, 20}, 1)), Tensor::Scalar(0.0f));
    const Tensor read = scale(attention(query, sequence, sequence, {.attn_mask = later}));
    const Tensor products = einsum("ntc,nsc->nts", {read, tile(query, {1, 2, 1})});
    return fc(reduce_mean(triu(products), {1}));
  }
  nn::Conv2d conv{2, 4, 3};
  nn::InstanceNorm2d norm{4};
  nn::Conv1d line{4, 8, 3};
  nn::MultiheadAttention attention{8, 2};
  nn::RMSNorm scale{8};
  nn::Dense fc{10, 3};
};

/// [N, T] token indices -> [N, T, 10].
class NextTokens : public nn::Cell {
 public:
  MPC_CELL(NextTokens, embedding, fc)
  Tensor Construct(Tensor indices) { return fc(embedding(indices)); }
  nn::Embedding embedding{10, 8, {.embedding_table = Normal(1.0)}};
  nn::Dense fc{8, 10};
};

/// The loss of logits [N, T, V] and labels [N, T].
class TokenLoss : public nn::Cell {
 public:
  MPC_CELL(TokenLoss, loss)
  Tensor Construct(Tensor logits, Tensor labels) {
    return loss(reshape(logits, {-1, logits.dim(2)}), reshape(labels, {-1}));
  }
  nn::CrossEntropyLoss loss;
};

/// The same of the tokens themselves: a label is the token behind, which there is none of at the end. 0 is no label.
class ShiftedTokenLoss : public nn::Cell {
 public:
  MPC_CELL(ShiftedTokenLoss, loss)
  Tensor Construct(Tensor logits, Tensor tokens) {
    const Tensor behind = slice(tokens, {0, 1}, {tokens.dim(0), tokens.dim(1) - 1});
    const Tensor labels = pad(behind, {0, 0}, {0, 1}, 0);
    const Tensor none = ops::Fill(tokens.dtype(), {}, -100), zero = ops::Fill(tokens.dtype(), {}, 0);
    return loss(logits, where(equal(labels, zero), none, labels));
  }
  TokenLoss loss;
};

/// [N, 6] -> [N, 3]: numbers whose squares f16 does not hold.
class LoudRows : public nn::Cell {
 public:
  MPC_CELL(LoudRows, norm, fc)
  Tensor Construct(Tensor x) { return fc(norm(x * 4096.0)); }
  nn::RMSNorm norm{6};
  nn::Dense fc{6, 3};
};

data::Row TokenBatch() {
  std::vector<std::int32_t> indices;
  for (std::int32_t i = 0; i < 40; ++i) indices.push_back((i * 7 + i / 5) % 10);
  return {Tensor::From(indices, {8, 5}), MakeBatch({6}, 8, 0)[1]};
}

class ActivationTraining : public ::testing::TestWithParam<Level> {};

template <typename Network>
void ExpectLossFalls(const Level& level, const data::Row& batch) {
  Training<Network> training(level, FixedLossScaleManager({.loss_scale = 64}));
  const Snapshot before = ParametersOf(*training.network);
  LossRecorder recorder;
  MPC_ASSERT_OK(training.model->Train(12, Batches({batch}), {recorder}));
  ASSERT_EQ(recorder.losses.size(), 12u);
  EXPECT_LT(recorder.losses.back(), recorder.losses.front());
  EXPECT_EQ(Differences(before, ParametersOf(*training.network)).size(), before.size())
      << "a parameter was not trained";
}

TEST_P(ActivationTraining, LossFalls) {
  {
    SCOPED_TRACE("images");
    ExpectLossFalls<CutImages>(GetParam(), MakeBatch({2, 6, 6}, 8, 0));
  }
  {
    SCOPED_TRACE("functions");
    ExpectLossFalls<ManyFunctions>(GetParam(), MakeBatch({6}, 8, 0));
  }
  {
    SCOPED_TRACE("composed");
    ExpectLossFalls<ComposedParts>(GetParam(), MakeBatch({2, 6, 6}, 8, 0));
  }
  {
    SCOPED_TRACE("loud rows");
    ExpectLossFalls<LoudRows>(GetParam(), MakeBatch({6}, 8, 0));
  }
  {
    SCOPED_TRACE("tokens");
    ExpectLossFalls<Tokens>(GetParam(), TokenBatch());
  }
}

// x and the results of fc are rounded to bf16 or f16; the largest result is below 2.
TEST_P(ActivationTraining, RowsWhoseSquaresOverflowAreNormalised) {
  const Tensor x = Values({8, 6});
  const auto predict = [&](const Level& level) {
    SetSeed(7);
    LoudRows network;
    Model model(network, ModelOptions{.amp_level = level.level, .amp_dtype = level.dtype});
    const absl::StatusOr<Tensor> y = model.Predict(x);
    EXPECT_TRUE(y.ok()) << y.status();
    return y.ok() ? cast(*y, DType::kF32).ToFloats() : std::vector<float>();
  };
  EXPECT_THAT(predict(GetParam()), Pointwise(FloatNear(0.05f), predict({"O0", {}})));
}

// No level casts the labels, and no bit of the step depends on where they are made.
TEST_P(ActivationTraining, LabelsThatTheStepMakesTrainAsThoseOfTheData) {
  const Tensor tokens = TokenBatch()[0];
  std::vector<std::int32_t> labels(40, -100);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const std::int32_t behind = i % 5 == 4 ? 0 : tokens.data<std::int32_t>()[i + 1];
    if (behind != 0) labels[i] = behind;
  }
  const auto train = [&](auto& loss, const Tensor& second) {
    SetSeed(7);
    NextTokens network;
    nn::Momentum optimizer(network.TrainableParams(), {.learning_rate = 0.05});
    const LossScaleChoice scale = FixedLossScaleManager({.loss_scale = 64});
    Model model(network, loss, optimizer,
                {.amp_level = GetParam().level, .loss_scale_manager = scale, .amp_dtype = GetParam().dtype});
    MPC_EXPECT_OK(model.Train(3, Batches({{tokens, second}})));
    return StateOf(model);
  };
  TokenLoss plain;
  ShiftedTokenLoss shifted;
  EXPECT_EQ(Differences(train(plain, Tensor::From(labels, {8, 5})), train(shifted, tokens)),
            std::vector<std::string>());
}

INSTANTIATE_TEST_SUITE_P(Levels, ActivationTraining, ::testing::ValuesIn(AllLevels()), LevelName);

// Compiled whole, image operations run channels-last with the transposes moved to the borders; one by one, each runs as
// it is written. Convolutions may add in another order: 63 terms of magnitude below 1.
TEST(ChannelsLast, GivesTheValuesOfTheOperationsOneByOne) {
  SetSeed(7);
  CutImages network;
  const Tensor x = Values({2, 2, 6, 6});
  const Tensor whole = network(x);
  MPC_ASSERT_OK(whole.status());
  const auto value = [](const Parameter& parameter) { return *parameter.Value(); };
  const auto convolve = [&](const Tensor& input, const nn::Conv2d& conv) {
    return conv2d(input, value(conv.weight), {}, {.pad_mode = "same"});
  };
  const Tensor y = convolve(x, network.conv);
  const Tensor joined = concat({silu(y), prelu(y, value(network.slopes.w)), gelu(y, "tanh")}, 1);
  const std::vector<Tensor> pieces = split(slice(joined, {0, 0, 1, 0}, {2, 12, 5, 5}), {5, 7}, 1);
  const Tensor z = convolve(pad(pieces[1], {0, 0, 1, 0}, {0, 0, 0, 1}, 0.5), network.second);
  const Tensor chosen = where(greater(z, Tensor::Scalar(0.0f)), minimum(z, clamp(y, -1, 1)), leaky_relu(z));
  const Tensor features = concat({reduce_max(chosen, {2, 3}), global_avg_pool2d(chosen)}, 1);
  const Tensor expected = matmul(features, value(network.fc.weight), value(network.fc.bias), {.transpose_b = true});
  EXPECT_THAT(whole.ToFloats(), Pointwise(FloatNear(100 * 0x1p-24f), expected.ToFloats()));
}

}  // namespace
}  // namespace mpc::testing
