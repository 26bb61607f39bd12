// Hand-computed values of attention, recurrent cells, transposed convolution, layer and group normalisation.
#include <cmath>
#include <limits>

#include "tests/kernels/reference_run.h"

namespace mpc::test {
namespace {

TEST(BatchMatmul, MultipliesEachPairOfMatrices) {
  ExpectNear(RunOne("batch_matmul", {}, {F32({2, 1, 2}, {1, 2, 3, 4}), F32({2, 2, 1}, {5, 6, 7, 8})}, {2, 1, 1}),
             {17, 53});
  ExpectNear(RunOne("batch_matmul", {{"transpose_a", true}, {"transpose_b", true}},
                    {F32({1, 2, 1}, {1, 2}), F32({1, 1, 2}, {3, 4})}, {1, 1, 1}),
             {11});
}

// One head of two rows over three columns; keys make the scores log 1, log 2, log 3 times the query.
std::vector<reference::Tensor> OneHead(double row0, double row1) {
  return {F32({1, 1, 2, 1}, {row0, row1}), F32({1, 1, 3, 1}, {0, std::log(2), std::log(3)}),
          F32({1, 1, 3, 1}, {1, 10, 100})};
}

std::vector<reference::Tensor> RunAttention(const Attributes& attributes,
                                            const std::vector<reference::Tensor>& operands) {
  return RunReference("attention", attributes, operands, {{DType::kF32, {1, 1, 2, 1}}, {DType::kF32, {1, 1, 2}}});
}

TEST(Attention, AveragesValuesByTheSoftmaxOfScores) {
  const auto results = RunAttention({{"scale", 1.0}}, OneHead(1, 0));
  ExpectNear(results[0].values, {321.0 / 6, 111.0 / 3});
  ExpectNear(results[1].values, {std::log(6), std::log(3)});
}

TEST(Attention, CausalAlignsTheLastRowWithTheLastColumn) {
  const auto results = RunAttention({{"scale", 1.0}, {"causal", true}}, OneHead(1, 1));
  ExpectNear(results[0].values, {21.0 / 3, 321.0 / 6});
}

TEST(Attention, ARowThatMayReadNothingIsZero) {
  std::vector<reference::Tensor> operands = OneHead(1, 1);
  operands.push_back(Bool({2, 3}, {0, 0, 0, 1, 0, 1}));
  const auto results = RunAttention({{"scale", 1.0}}, operands);
  ExpectNear(results[0].values, {0, 301.0 / 4});
  EXPECT_EQ(results[1].values[0], -std::numeric_limits<double>::infinity());
  operands = {F32({1, 1, 2, 1}, {1, 1}), operands[0], operands[1], operands[2], results[1], operands[3]};
  const auto gradients =
      RunReference("attention_grad", {{"scale", 1.0}}, operands,
                   {{DType::kF32, {1, 1, 2, 1}}, {DType::kF32, {1, 1, 3, 1}}, {DType::kF32, {1, 1, 3, 1}}});
  EXPECT_EQ(gradients[0].values[0], 0);
  ExpectNear(gradients[2].values, {0.25, 0, 0.75});
}

TEST(Attention, ANanReachesTheSumOfItsRowAlone) {
  const auto results = RunAttention({{"scale", 1.0}}, OneHead(std::nan(""), 0));
  EXPECT_TRUE(std::isnan(results[0].values[0]));
  EXPECT_TRUE(std::isnan(results[1].values[0]));
  ExpectNear({results[0].values[1], results[1].values[1]}, {111.0 / 3, std::log(3)});
}

TEST(Attention, ScoresOfMinusInfinityAloneReadNothing) {
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<reference::Tensor> operands = OneHead(1, 0);
  operands[0].values[0] = -infinity;
  operands[1].values = {1, 2, 3};
  operands.push_back(Bool({2, 1}, {1, 0}));
  const auto results = RunAttention({{"scale", 1.0}}, operands);
  EXPECT_EQ(results[0].values, (Values{0, 0}));
  EXPECT_EQ(results[1].values, (Values{-infinity, -infinity}));
}

TEST(Attention, WhatMayNotBeReadHasNoDerivativeByANan) {
  std::vector<reference::Tensor> operands = OneHead(1, 0);
  operands.push_back(RunAttention({{"scale", 1.0}, {"causal", true}}, operands)[1]);
  operands.insert(operands.begin(), F32({1, 1, 2, 1}, {std::nan(""), 1}));
  const auto gradients =
      RunReference("attention_grad", {{"scale", 1.0}, {"causal", true}}, operands,
                   {{DType::kF32, {1, 1, 2, 1}}, {DType::kF32, {1, 1, 3, 1}}, {DType::kF32, {1, 1, 3, 1}}});
  // The first row reads two columns. Its cotangent is no number.
  for (std::size_t s = 0; s < 2; ++s) {
    EXPECT_TRUE(std::isnan(gradients[1].values[s])) << s;
    EXPECT_TRUE(std::isnan(gradients[2].values[s])) << s;
  }
  EXPECT_EQ(gradients[1].values[2], 0);
  ExpectNear({gradients[2].values[2]}, {1.0 / 3});
}

TEST(Attention, LowProbabilitiesAreRoundedBeforeTheirProduct) {
  std::vector<reference::Tensor> operands = OneHead(1, 0);
  operands[2] = F16({1, 1, 3, 1}, {0, 0, 3});
  const auto results = RunAttention({{"scale", 1.0}}, operands);
  ExpectNear(results[0].values, {1.5, 3 * reference::RoundTo(DType::kF16, 1.0 / 3)});
}

TEST(LstmCell, GatesAreInTheOrderInputForgetCellOutput) {
  const double infinity = 100;  // saturates
  const auto results = RunReference("lstm_cell", {}, {F32({1, 4}, {infinity, 0, 0.5, 0}), F32({1, 1}, {2})},
                                    {{DType::kF32, {1, 1}}, {DType::kF32, {1, 1}}, {DType::kF32, {1, 4}}});
  const double cell = 0.5 * 2 + std::tanh(0.5);
  ExpectNear(results[0].values, {0.5 * std::tanh(cell)});
  ExpectNear(results[1].values, {cell});
  ExpectNear(results[2].values, {1, 0.5, std::tanh(0.5), 0.5});
}

TEST(LstmCell, TheCellStateHasItsOwnPathToTheGates) {
  const Values gates = {0.3, -0.7, 0.9, 0.4};
  const auto cell = [&](Values moved, double state) {
    return RunReference("lstm_cell", {}, {F32({1, 4}, std::move(moved)), F32({1, 1}, {state})},
                        {{DType::kF32, {1, 1}}, {DType::kF32, {1, 1}}, {DType::kF32, {1, 4}}});
  };
  const auto forward = cell(gates, 1.5);
  const auto gradients = RunReference("lstm_cell_grad", {},
                                      {F32({1, 1}, {0}), F32({1, 1}, {1}), forward[2], F32({1, 1}, {1.5}), forward[1]},
                                      {{DType::kF32, {1, 4}}, {DType::kF32, {1, 1}}});
  // Central differences err by step^2 / 6 times a third derivative below 1.
  constexpr double kStep = 1e-4;
  for (std::size_t g = 0; g < 4; ++g) {
    Values low = gates, high = gates;
    low[g] -= kStep;
    high[g] += kStep;
    const double expected = (cell(high, 1.5)[1].values[0] - cell(low, 1.5)[1].values[0]) / (2 * kStep);
    EXPECT_NEAR(gradients[0].values[g], expected, 1e-8) << g;
  }
  EXPECT_NEAR(gradients[1].values[0], forward[2].values[1], 1e-13);
}

TEST(ConvTranspose2d, SpreadsEachPixelOverItsWindow) {
  // Two pixels, stride 2, kernel 1x3: windows overlap in the middle.
  ExpectNear(RunOne("conv_transpose2d", {{"strides", Ints{1, 2}}},
                    {F32({1, 1, 1, 2}, {1, 10}), F32({1, 1, 1, 3}, {1, 2, 3}), F32({1}, {0.5})}, {1, 1, 1, 5}),
             {1.5, 2.5, 13.5, 20.5, 30.5});
}

TEST(LayerNorm, NormalisesTheTrailingAxes) {
  const auto results =
      RunReference("layer_norm", {{"epsilon", 0.0}}, {F32({2, 2}, {1, 3, -5, 5}), F32({2}, {1, 2}), F32({2}, {0, 10})},
                   {{DType::kF32, {2, 2}}, {DType::kF32, {2}}, {DType::kF32, {2}}});
  ExpectNear(results[0].values, {-1, 12, -1, 12});
  ExpectNear(results[1].values, {2, 0});
  ExpectNear(results[2].values, {1, 0.2});
}

TEST(GroupNorm, GroupsAreNeighbouringChannelsInEitherDataFormat) {
  const std::vector<TensorSpec> first = {{DType::kF32, {1, 4, 1, 1}}, {DType::kF32, {1, 2}}, {DType::kF32, {1, 2}}};
  const reference::Tensor gamma = F32({4}, {1, 1, 1, 3});
  const reference::Tensor beta = F32({4}, {0, 0, 0, 1});
  for (const char* format : {"NCHW", "NHWC"}) {
    const bool last = std::string(format) == "NHWC";
    std::vector<TensorSpec> specs = first;
    if (last) specs[0].shape = {1, 1, 1, 4};
    const auto results = RunReference(
        "group_norm", {{"epsilon", 0.0}, {"groups", std::int64_t{2}}, {"data_format", std::string(format)}},
        {F32(specs[0].shape, {1, 3, 10, 30}), gamma, beta}, specs);
    ExpectNear(results[0].values, {-1, 1, -1, 4});
    ExpectNear(results[1].values, {2, 20});
  }
}

TEST(BceWithLogits, IsTheCrossEntropyOfTheSigmoid) {
  const double p = 1 / (1 + std::exp(-0.3));
  ExpectNear(
      RunOne("bce_with_logits", {{"reduction", std::string("none")}}, {F32({2}, {0.3, 500}), F32({2}, {0.25, 1})}, {2}),
      {-0.25 * std::log(p) - 0.75 * std::log(1 - p), 0});
}

}  // namespace
}  // namespace mpc::test
