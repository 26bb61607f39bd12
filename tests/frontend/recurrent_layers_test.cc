// Recurrent layers, norms of sequences and binary cross-entropy.
#include "frontend/nn/recurrent_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::Values;

float SigmoidOf(float x) { return 1 / (1 + std::exp(-x)); }

std::vector<std::string> NamesOf(nn::Cell& cell) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : cell.ParametersAndNames()) names.push_back(name);
  return names;
}

/// As ExpectGradient, of a function that calls `layer`.
void ExpectLayerGradient(nn::Cell& layer, const testing::TensorFunction& function, const Tensor& x) {
  ExpectGradient(function, x, 2e-3f, &layer);
}

Parameter Get(nn::Cell& cell, const std::string& name) { return *cell.GetParameter(name); }

/// Step t of a sequence [T, N, I].
Tensor StepOf(const Tensor& x, std::int64_t t) {
  return reshape(slice(x, {t, 0, 0}, {1, x.dim(1), x.dim(2)}), {x.dim(1), x.dim(2)});
}

/// Gives the Parameters of a cell those of a layer whose names end in `suffix`.
void Copy(nn::Cell& layer, const std::string& suffix, nn::Cell& cell) {
  for (auto& [name, parameter] : cell.ParametersAndNames()) {
    MPC_ASSERT_OK(parameter.SetData(*Get(layer, name + suffix).Value()));
  }
}

TEST(GruCell, IsPyTorchsStep) {
  nn::GRUCell cell(2, 1);
  EXPECT_EQ(cell.weight_ih.shape(), Shape({3, 2}));
  EXPECT_EQ(cell.weight_hh.shape(), Shape({3, 1}));
  const Tensor h = cell(Tensor::From({0.5f, -1.0f}, {1, 2}), Tensor::From({0.25f}, {1, 1}));
  std::vector<float> of_x(3), of_h(3);
  for (std::size_t g = 0; g < 3; ++g) {
    const auto of = [](const Parameter& parameter, std::size_t i) { return parameter.Value()->ToFloats()[i]; };
    of_x[g] = 0.5f * of(cell.weight_ih, 2 * g) - of(cell.weight_ih, 2 * g + 1) + of(cell.bias_ih, g);
    of_h[g] = 0.25f * of(cell.weight_hh, g) + of(cell.bias_hh, g);
  }
  const float reset = SigmoidOf(of_x[0] + of_h[0]), update = SigmoidOf(of_x[1] + of_h[1]);
  const float proposed = std::tanh(of_x[2] + reset * of_h[2]);
  EXPECT_NEAR(h.ToFloats()[0], (1 - update) * proposed + update * 0.25f, 1e-6);
  EXPECT_THAT(ErrorOf(cell(Values({1, 3}), Values({1, 1}))),
              HasSubstr("GRUCell expects x [N, 2] and state h [N, 1], got tensor<1x3xf32>"));
  EXPECT_EQ(nn::GRUCell(2, 1, {.has_bias = false}).TrainableParams().size(), 2u);
}

TEST(GruCell, HasTheDerivativesOfDifferences) {
  nn::GRUCell cell(3, 2);
  const Tensor x = Values({2, 3}, 1), h = Values({2, 2}, 2);
  ExpectLayerGradient(
      cell, [&](const Tensor& x) { return cell(x, h); }, x);
  ExpectLayerGradient(
      cell, [&](const Tensor& h) { return cell(x, h); }, h);
}

TEST(Lstm, IsItsCellsOneAfterTheOther) {
  nn::LSTM layer(3, 2, {.num_layers = 2});
  EXPECT_THAT(NamesOf(layer), ElementsAre("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_ih_l1",
                                          "weight_hh_l1", "bias_ih_l1", "bias_hh_l1"));
  const Tensor x = Values({4, 2, 3}, 1), h0 = Values({2, 2, 2}, 2), c0 = Values({2, 2, 2}, 3);
  const std::vector<Tensor> result = layer(x, h0, c0);
  ASSERT_EQ(result.size(), 3u);
  EXPECT_EQ(result[0].shape(), Shape({4, 2, 2}));
  EXPECT_EQ(result[1].shape(), Shape({2, 2, 2}));
  nn::LSTMCell first(3, 2), second(2, 2);
  Copy(layer, "_l0", first);
  Copy(layer, "_l1", second);
  std::pair<Tensor, Tensor> low(StepOf(h0, 0), StepOf(c0, 0)), high(StepOf(h0, 1), StepOf(c0, 1));
  for (std::int64_t t = 0; t < 4; ++t) {
    low = first(StepOf(x, t), low.first, low.second);
    high = second(low.first, high.first, high.second);
    EXPECT_THAT(StepOf(result[0], t).ToFloats(), Pointwise(FloatNear(1e-6f), high.first.ToFloats())) << t;
  }
  EXPECT_THAT(StepOf(result[1], 0).ToFloats(), Pointwise(FloatNear(1e-6f), low.first.ToFloats()));
  EXPECT_THAT(StepOf(result[1], 1).ToFloats(), Pointwise(FloatNear(1e-6f), high.first.ToFloats()));
  EXPECT_THAT(StepOf(result[2], 0).ToFloats(), Pointwise(FloatNear(1e-6f), low.second.ToFloats()));
  EXPECT_THAT(StepOf(result[2], 1).ToFloats(), Pointwise(FloatNear(1e-6f), high.second.ToFloats()));
}

TEST(Lstm, BatchFirstIsTheTransposeAndStatesBeginAtZero) {
  nn::LSTM layer(3, 2), samples_first(3, 2, {.batch_first = true});
  Copy(layer, "", samples_first);
  const Tensor x = Values({4, 2, 3}, 1), zeros = Tensor::Zeros({1, 2, 2});
  const std::vector<Tensor> expected = layer(x, zeros, zeros), result = samples_first(transpose(x, {1, 0, 2}));
  EXPECT_EQ(transpose(result[0], {1, 0, 2}).ToFloats(), expected[0].ToFloats());
  EXPECT_EQ(result[2].ToFloats(), expected[2].ToFloats());
}

TEST(Gru, TheWayBackReadsFromTheEnd) {
  nn::GRU layer(3, 2, {.bidirectional = true}), one_way(3, 2);
  EXPECT_EQ(NamesOf(layer)[4], "weight_ih_l0_reverse");
  const Tensor x = Values({4, 2, 3}, 1);
  const std::vector<Tensor> result = layer(x);
  ASSERT_EQ(result.size(), 2u);
  EXPECT_EQ(result[0].shape(), Shape({4, 2, 4}));
  EXPECT_EQ(result[1].shape(), Shape({2, 2, 2}));
  for (auto& [name, parameter] : one_way.ParametersAndNames()) {
    MPC_ASSERT_OK(parameter.SetData(*Get(layer, name + "_reverse").Value()));
  }
  const std::vector<Tensor> back = one_way(flip(x, {0}));
  // Below AVX-512 oneDNN's product rounds a row by where it lies in its operand. A gate is a sum of 7 terms of together
  // at most 5, as weights are at most 0.71 and x and h at most 1. Sigmoid and tanh add no error to what they are given,
  // and each of four steps adds that of both products to the one before. With AVX-512 bits are equal.
  const bool has_avx512 = __builtin_cpu_supports("avx512f") != 0;
  const auto is_near = FloatNear(has_avx512 ? 0.0f : 4 * 2 * 7 * 5 * 0x1p-24f);
  EXPECT_THAT(slice(result[0], {0, 0, 2}, {4, 2, 2}).ToFloats(), Pointwise(is_near, flip(back[0], {0}).ToFloats()));
  EXPECT_THAT(StepOf(result[1], 1).ToFloats(), Pointwise(is_near, back[1].ToFloats()));
  EXPECT_EQ(layer(x, Tensor::Zeros({2, 2, 2}))[0].ToFloats(), result[0].ToFloats());
}

TEST(Gru, IsItsCellsOneAfterTheOther) {
  nn::GRU layer(3, 2);
  nn::GRUCell cell(3, 2);
  Copy(layer, "_l0", cell);
  const Tensor x = Values({3, 2, 3}, 1);
  const std::vector<Tensor> result = layer(x);
  Tensor h = Tensor::Zeros({2, 2});
  for (std::int64_t t = 0; t < 3; ++t) {
    h = cell(StepOf(x, t), h);
    EXPECT_THAT(StepOf(result[0], t).ToFloats(), Pointwise(FloatNear(1e-6f), h.ToFloats())) << t;
  }
  EXPECT_THAT(result[1].ToFloats(), Pointwise(FloatNear(1e-6f), h.ToFloats()));
}

TEST(RecurrentLayers, HaveTheDerivativesOfDifferences) {
  nn::LSTM lstm(2, 2, {.num_layers = 2, .batch_first = true, .bidirectional = true});
  nn::GRU gru(2, 2);
  const Tensor x = Values({2, 3, 2}, 1);
  ExpectLayerGradient(
      lstm, [&](const Tensor& x) { return lstm(x)[0]; }, x);
  ExpectLayerGradient(
      gru, [&](const Tensor& x) { return gru(x)[0]; }, x);
  ExpectLayerGradient(
      gru, [&](const Tensor& h) { return gru(x, h)[1]; }, Values({1, 3, 2}, 2));
}

TEST(RecurrentLayers, RefuseWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf(nn::LSTM(3, 2)(Values({4, 2, 5}))[0]),
              HasSubstr("LSTM expects x [T, N, 3], alone or with h and c [1, N, 2], got tensor<4x2x5xf32>"));
  EXPECT_THAT(ErrorOf(nn::GRU(3, 2, {.batch_first = true})(Values({4, 2, 3}), Values({1, 2, 2}))[0]),
              HasSubstr("GRU expects x [N, T, 3], alone or with h [1, N, 2], got"));
  EXPECT_THAT(ErrorOf(nn::LSTM(3, 2, {.num_layers = 0})(Values({4, 2, 3}))[0]),
              HasSubstr("LSTM takes 1 layer or more"));
  EXPECT_THAT(ErrorOf(nn::LSTM(3, 2)(Tensor::Zeros({0, 2, 3}))[0]),
              HasSubstr("LSTM takes sequences of length 1 or more, got T = 0 of x tensor<0x2x3xf32>"));
  EXPECT_THAT(ErrorOf(nn::GRU(3, 2, {.batch_first = true})(Tensor::Zeros({2, 0, 3}))[0]),
              HasSubstr("GRU takes sequences of length 1 or more, got T = 0 of x tensor<2x0x3xf32>"));
}

/// A classifier of sequences [N, T, 3].
class Classifier : public nn::Cell {
 public:
  MPC_CELL(Classifier, rnn, head)
  Tensor Construct(const Tensor& x) {
    const std::vector<Tensor> states = rnn(x);
    return head(squeeze(slice(states[0], {0, x.dim(1) - 1, 0}, {x.dim(0), 1, 4}), {1}));
  }
  nn::LSTM rnn{3, 4, {.num_layers = 2, .batch_first = true, .dropout = 0.1}};
  nn::Dense head{4, 2};
};

TEST(RecurrentLayers, TrainInLowPrecision) {
  SetSeed(1);
  std::vector<data::Row> rows;
  for (std::int64_t i = 0; i < 64; ++i) {
    const Tensor x = Values({5, 3}, i);
    rows.push_back({x, Tensor::Scalar<std::int32_t>(x.ToFloats()[12] > 0 ? 1 : 0)});
  }
  Classifier net;
  nn::CrossEntropyLoss loss;
  nn::Adam opt(net.TrainableParams(), {.learning_rate = 0.02});
  Model model(net, loss, opt, {.metrics = {"accuracy"}, .amp_level = "O2"});
  auto train_set = data::GeneratorDataset(rows, {"x", "label"}).Batch(16);
  MPC_ASSERT_OK(model.Train(30, train_set));
  const auto metrics = model.Eval(train_set);
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_GT(metrics->at("accuracy"), 0.9);
}

TEST(BatchNorm1d, TakesSequences) {
  nn::BatchNorm1d line(2);
  nn::BatchNorm2d image(2);
  line.SetTrain();
  image.SetTrain();
  const Tensor x = Values({3, 2, 4});
  EXPECT_EQ(line(x).ToFloats(), image(reshape(x, {3, 2, 1, 4})).ToFloats());
  EXPECT_EQ(line(x).shape(), x.shape());
  line.SetTrain(false);
  image.SetTrain(false);
  EXPECT_EQ(line(x).shape(), x.shape());
  EXPECT_EQ(line(Values({3, 2})).shape(), Shape({3, 2}));
  EXPECT_THAT(ErrorOf(line(Values({3, 2, 1, 4}))),
              HasSubstr("BatchNorm1d expects a rank-2 or rank-3 tensor with 2 channels on axis 1"));
}

TEST(GroupNorm, TakesSequences) {
  nn::GroupNorm norm(2, 4);
  const Tensor x = Values({3, 4, 5});
  EXPECT_EQ(norm(x).ToFloats(), norm(reshape(x, {3, 4, 1, 5})).ToFloats());
  EXPECT_EQ(norm(x).shape(), x.shape());
  ExpectLayerGradient(
      norm, [&](const Tensor& x) { return norm(x); }, Values({1, 4, 2}));
}

/// The derivative of BCELoss by w + p.
class BceGradient : public nn::TrainingStep {
 public:
  MPC_CELL(BceGradient, w, loss)
  Tensor Construct(const Tensor& p, const Tensor& t) { return ops::Backward(loss(w + p, t), {w})[0]; }
  Parameter w{{4}, Zeros()};
  nn::BCELoss loss{{.reduction = "sum"}};
};

TEST(BceLoss, HasPyTorchsValuesAndDerivatives) {
  const Tensor p = Tensor::From({0.25f, 0.5f, 0.0f, 1.0f}, {4}), t = Tensor::From({1.0f, 0.25f, 1.0f, 1.0f}, {4});
  const nn::BCELossOptions none{.reduction = "none"};
  const float two = std::log(2.0f);
  EXPECT_THAT(nn::BCELoss(none)(p, t).ToFloats(), Pointwise(FloatNear(1e-6f), {2 * two, two, 100.0f, 0.0f}));
  EXPECT_NEAR(nn::BCELoss()(p, t).Item<float>(), (3 * two + 100) / 4, 1e-5);
  const std::vector<float> gradient = BceGradient()(p, t).ToFloats();
  // (p - t) / max(p (1 - p), 1e-12): finite where the logarithms' derivative is not.
  EXPECT_THAT(gradient, Pointwise(::testing::FloatEq(), {-4.0f, 1.0f, -1e12f, 0.0f}));
  const Tensor weight = Tensor::From({2.0f, 1.0f, 0.0f, 1.0f}, {4});
  EXPECT_THAT(nn::BCELoss({.weight = weight, .reduction = "none"})(p, t).ToFloats(),
              Pointwise(FloatNear(1e-6f), {4 * two, two, 0.0f, 0.0f}));
  EXPECT_TRUE(std::isnan(nn::BCELoss()(Tensor::From({1.5f}, {1}), Tensor::From({1.0f}, {1})).Item<float>()));
  EXPECT_THAT(ErrorOf(nn::BCELoss()(p, Values({3}))), HasSubstr("BCELoss expects two floating tensors of one shape"));
  EXPECT_THAT(ErrorOf(nn::BCELoss({.weight = Values({2, 4})})(p, t)), HasSubstr("a weight that broadcasts to"));
  ExpectGradient([&](const Tensor& x) { return nn::BCELoss()(sigmoid(x), t); }, Values({4}));
}

}  // namespace
}  // namespace mpc
