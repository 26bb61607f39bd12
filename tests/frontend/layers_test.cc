#include "frontend/nn/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/lenet5.h"
#include "tests/frontend/error_of.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using testing::Values;

Tensor Counting(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(NumElements(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return Tensor::From(values, shape);
}

TEST(Conv2d, DefaultsAreMindSpores) {
  nn::Conv2d conv(3, 8, 5);
  EXPECT_EQ(conv.weight.shape(), Shape({8, 3, 5, 5}));
  EXPECT_FALSE(conv.bias.defined());
  EXPECT_EQ(conv(Values({1, 3, 9, 7})).shape(), Shape({1, 8, 9, 7})) << "pad_mode same";
  // HeUniform(sqrt(5)): bound 1 / sqrt(fan_in).
  const double bound = 1 / std::sqrt(75.0);
  for (float value : conv.weight.Value()->ToFloats()) ASSERT_LE(std::abs(value), bound);
}

TEST(Conv2d, ComputesTheCrossCorrelation) {
  nn::Conv2d conv(1, 1, 2, {.pad_mode = "valid", .has_bias = true, .bias_init = Constant(0.5)});
  ASSERT_TRUE(conv.weight.SetData(Tensor::From({1.0f, 2.0f, 3.0f, 4.0f}, {1, 1, 2, 2})).ok());
  EXPECT_THAT(conv(Counting({1, 1, 3, 3})).ToFloats(), ElementsAre(1 + 4 + 12 + 20 + 0.5, 2 + 6 + 15 + 24 + 0.5,
                                                                   4 + 10 + 21 + 32 + 0.5, 5 + 12 + 24 + 36 + 0.5));
}

TEST(Conv2d, StridePaddingDilationAndGroups) {
  nn::Conv2d strided(1, 1, 1, {.stride = 2, .pad_mode = "valid", .weight_init = Ones()});
  EXPECT_THAT(strided(Counting({1, 1, 3, 3})).ToFloats(), ElementsAre(1, 3, 7, 9));
  nn::Conv2d padded(1, 1, 3, {.pad_mode = "pad", .padding = {1, 0, 2, 0}, .weight_init = Ones()});
  EXPECT_EQ(padded(Counting({1, 1, 3, 3})).shape(), Shape({1, 1, 2, 3}));
  nn::Conv2d dilated(1, 1, {1, 2}, {.pad_mode = "valid", .dilation = {1, 2}, .weight_init = Ones()});
  EXPECT_THAT(dilated(Counting({1, 1, 2, 3})).ToFloats(), ElementsAre(1 + 3, 4 + 6));
  nn::Conv2d grouped(2, 2, 1, {.group = 2, .weight_init = Ones()});
  EXPECT_EQ(grouped.weight.shape(), Shape({2, 1, 1, 1}));
  EXPECT_THAT(grouped(Counting({1, 2, 1, 2})).ToFloats(), ElementsAre(1, 2, 3, 4));
}

TEST(Conv2d, WrongChannelsAndModesAreErrors) {
  nn::Conv2d conv(3, 8, 3);
  EXPECT_THAT(ErrorOf(conv(Values({1, 2, 8, 8}))),
              HasSubstr("conv2d: Conv2d expects 3 input channels, got 2 (input tensor<1x2x8x8xf32>)"));
  EXPECT_FALSE(conv(Values({3, 8})).status().ok());
  nn::Conv2d unknown(1, 1, 3, {.pad_mode = "full"});
  EXPECT_THAT(ErrorOf(unknown(Values({1, 1, 8, 8}))), HasSubstr("full"));
  nn::Conv2d large(1, 1, 9, {.pad_mode = "valid"});
  EXPECT_FALSE(large(Values({1, 1, 4, 4})).status().ok());
}

TEST(Dense, ComputesXTimesWeightTransposedPlusBias) {
  nn::Dense dense(2, 3);
  EXPECT_EQ(dense.weight.shape(), Shape({3, 2}));
  ASSERT_TRUE(dense.weight.SetData(Tensor::From({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {3, 2})).ok());
  ASSERT_TRUE(dense.bias.SetData(Tensor::From({0.5f, 0.0f, -100.0f}, {3})).ok());
  EXPECT_THAT(dense(Tensor::From({1.0f, 10.0f}, {1, 2})).ToFloats(), ElementsAre(21.5, 43, -35));
  nn::Dense activated(2, 3, {.activation = "relu"});
  activated.weight = dense.weight;
  activated.bias = dense.bias;
  EXPECT_THAT(activated(Tensor::From({1.0f, 10.0f}, {1, 2})).ToFloats(), ElementsAre(21.5, 43, 0));
  EXPECT_FALSE(nn::Dense(2, 3, {.has_bias = false}).bias.defined());
}

// One compiled call gives gelu to the product, two do not.
TEST(Dense, TakesGeluInBothForms) {
  nn::Dense dense(5, 3);
  const Tensor x = Counting({2, 4, 5}) * 0.1 - 2;
  for (const auto& [activation, form] : {std::pair("gelu", "none"), std::pair("gelu_tanh", "tanh")}) {
    nn::Dense activated(5, 3, {.activation = activation});
    activated.weight = dense.weight;
    activated.bias = dense.bias;
    const std::vector<float> expected = gelu(dense(x), form).ToFloats();
    // Sums of six terms below 4.
    EXPECT_THAT(activated(x).ToFloats(), Pointwise(FloatNear(1e-5f), expected)) << activation;
  }
}

TEST(Dense, ActsOnTheLastAxisOfAnyRank) {
  nn::Dense dense(2, 3);
  const Tensor rows = Counting({6, 2});
  const Tensor y = dense(reshape(rows, {2, 3, 2}));
  EXPECT_EQ(y.shape(), Shape({2, 3, 3}));
  EXPECT_EQ(y.ToFloats(), dense(rows).ToFloats());
}

TEST(Dense, WrongFeaturesNameTheCellPath) {
  models::LeNet5 net;
  const Tensor result = net(Values({32, 1, 36, 36}));
  EXPECT_THAT(ErrorOf(result),
              HasSubstr("lenet5/fc1: Dense expects 400 input features, got 576 (input tensor<32x576xf32>)"));
  nn::Dense dense(4, 2);
  EXPECT_THAT(ErrorOf(dense(Values({2, 2, 2}))), HasSubstr("Dense expects 4 input features, got 2"));
  EXPECT_THAT(ErrorOf(dense(Values({4}))), HasSubstr("got a tensor of rank 1, not 2 or more"));
  nn::Dense unknown(4, 2, {.activation = "swish"});
  EXPECT_THAT(ErrorOf(unknown(Values({2, 4}))), HasSubstr("swish"));
}

TEST(BatchNorm, NormalisesByTheBatchAndMovesTheStatistics) {
  nn::BatchNorm1d norm(2);
  norm.SetTrain();
  const Tensor x = Tensor::From({1.0f, 10.0f, 3.0f, 30.0f}, {2, 2});
  const std::vector<float> y = norm(x).ToFloats();
  const float first = 1 / std::sqrt(1 + 1e-5f);
  const float second = 10 / std::sqrt(100 + 1e-5f);
  EXPECT_THAT(y, Pointwise(FloatNear(1e-6f), {-first, -second, first, second}));
  // momentum 0.9 is the weight of the old statistic; the variance is the unbiased one: 2 and 200.
  EXPECT_THAT(norm.moving_mean.Value()->ToFloats(), Pointwise(FloatNear(1e-6f), {0.2f, 2.0f}));
  EXPECT_THAT(norm.moving_variance.Value()->ToFloats(), Pointwise(FloatNear(1e-5f), {0.9f + 0.2f, 0.9f + 20.0f}));
}

TEST(BatchNorm, InferenceUsesTheRunningStatistics) {
  nn::BatchNorm2d norm(1, {.eps = 0.0,
                           .gamma_init = Constant(2),
                           .beta_init = Constant(1),
                           .moving_mean_init = Constant(3),
                           .moving_var_init = Constant(4)});
  EXPECT_THAT(norm(Tensor::From({3.0f, 5.0f, 1.0f, 7.0f}, {1, 1, 2, 2})).ToFloats(), ElementsAre(1, 3, -1, 5));
  EXPECT_EQ(norm.moving_mean.Value()->ToFloats()[0], 3.0f);
}

TEST(BatchNorm, WrongInputsAreErrors) {
  nn::BatchNorm2d norm(3);
  EXPECT_THAT(ErrorOf(norm(Values({2, 4, 5, 5}))),
              HasSubstr("BatchNorm2d expects a rank-4 tensor with 3 channels on axis 1, got tensor<2x4x5x5xf32>"));
  EXPECT_THAT(ErrorOf(norm(Values({2, 3}))), HasSubstr("rank-4"));
  norm.SetTrain();
  EXPECT_THAT(ErrorOf(norm(Values({1, 3, 1, 1}))), HasSubstr("more than one value a channel"));
}

TEST(BatchNorm, OptionsOutOfRangeAreErrors) {
  const Tensor x = Values({2, 3, 2, 2});
  for (const bool trains : {false, true}) {
    const auto error = [&](nn::BatchNorm2d norm) {
      norm.SetTrain(trains);
      return ErrorOf(norm(x));
    };
    EXPECT_THAT(error(nn::BatchNorm2d(3, {.momentum = 1.5})), HasSubstr("takes a momentum in [0, 1], got 1.5"));
    EXPECT_THAT(error(nn::BatchNorm2d(3, {.momentum = -0.5})), HasSubstr("takes a momentum in [0, 1], got -0.5"));
    EXPECT_THAT(error(nn::BatchNorm2d(3, {.momentum = NAN})),
                HasSubstr("BatchNorm2d takes a momentum in [0, 1], got "));
    EXPECT_THAT(error(nn::BatchNorm2d(3, {.eps = -1})),
                HasSubstr("BatchNorm2d takes an epsilon that is at least 0 and finite in f32, got -1"));
    for (const double momentum : {0.0, 1.0}) EXPECT_EQ(error(nn::BatchNorm2d(3, {.momentum = momentum})), "");
  }
}

TEST(BatchNorm, WithoutAffineNothingIsTrained) {
  nn::BatchNorm2d norm(3, {.affine = false});
  EXPECT_TRUE(norm.TrainableParams().empty());
  EXPECT_EQ(nn::BatchNorm2d(3).TrainableParams().size(), 2u);
}

TEST(Dropout, IsTheIdentityOutsideTraining) {
  nn::Dropout dropout;
  const Tensor x = Values({4, 5});
  EXPECT_EQ(dropout(x).ToFloats(), x.ToFloats());
}

TEST(Dropout, ZeroesTheShareAndScalesTheRest) {
  SetSeed(5);
  nn::Dropout dropout({.p = 0.3});
  dropout.SetTrain();
  const std::vector<float> y = dropout(Tensor::Full({100, 1000}, 1.0)).ToFloats();
  std::int64_t zeros = 0;
  for (float value : y) {
    if (value == 0) {
      ++zeros;
    } else {
      ASSERT_NEAR(value, 1 / 0.7, 1e-6);
    }
  }
  // Five deviations of a binomial count of 100,000.
  EXPECT_NEAR(static_cast<double>(zeros), 30000, 5 * std::sqrt(100000 * 0.3 * 0.7));
}

TEST(Dropout, MasksDifferByStepAndRepeatBySeed) {
  const Tensor x = Tensor::Full({10, 100}, 1.0);
  const auto two_steps = [&] {
    SetSeed(5);
    nn::Dropout dropout;
    dropout.SetTrain();
    const std::vector<float> first = dropout(x).ToFloats();
    return std::make_pair(first, dropout(x).ToFloats());
  };
  const auto masks = two_steps();
  EXPECT_NE(masks.first, masks.second);
  EXPECT_EQ(masks, two_steps());
}

TEST(Dropout, ProbabilityOutOfRangeIsAnError) {
  nn::Dropout dropout({.p = 1.5});
  dropout.SetTrain();
  EXPECT_THAT(ErrorOf(dropout(Values({4}))), HasSubstr("1.5"));
}

TEST(Pooling, DefaultsAndWindows) {
  EXPECT_THAT(nn::MaxPool2d()(Counting({1, 1, 2, 2})).ToFloats(), ElementsAre(1, 2, 3, 4)) << "kernel 1, stride 1";
  nn::MaxPool2d max({.kernel_size = 2, .stride = 2});
  EXPECT_THAT(max(Counting({1, 1, 4, 4})).ToFloats(), ElementsAre(6, 8, 14, 16));
  nn::AvgPool2d average({.kernel_size = 2, .stride = 2});
  EXPECT_THAT(average(Counting({1, 1, 4, 4})).ToFloats(), ElementsAre(3.5, 5.5, 11.5, 13.5));
  nn::AvgPool2d padded({.kernel_size = 2, .stride = 2, .pad_mode = "pad", .padding = {1}});
  EXPECT_THAT(padded(Tensor::Full({1, 1, 2, 2}, 4.0)).ToFloats(), ElementsAre(1, 1, 1, 1));
  nn::AvgPool2d valid_only(
      {.kernel_size = 2, .stride = 2, .pad_mode = "pad", .padding = {1}, .count_include_pad = false});
  EXPECT_THAT(valid_only(Tensor::Full({1, 1, 2, 2}, 4.0)).ToFloats(), ElementsAre(4, 4, 4, 4));
  nn::MaxPool2d same({.kernel_size = 2, .stride = 2, .pad_mode = "same"});
  EXPECT_EQ(same(Counting({1, 1, 3, 3})).shape(), Shape({1, 1, 2, 2}));
  EXPECT_FALSE(max(Counting({4, 4})).status().ok());
}

TEST(Activations, ComputeTheirFunctions) {
  const Tensor x = Tensor::From({-1.0f, 0.0f, 2.0f}, {1, 3});
  EXPECT_THAT(nn::ReLU()(x).ToFloats(), ElementsAre(0, 0, 2));
  EXPECT_THAT(nn::Sigmoid()(x).ToFloats(),
              Pointwise(FloatNear(1e-6f), {1 / (1 + std::exp(1.0f)), 0.5f, 1 / (1 + std::exp(-2.0f))}));
  EXPECT_THAT(nn::Tanh()(x).ToFloats(), Pointwise(FloatNear(1e-6f), {std::tanh(-1.0f), 0.0f, std::tanh(2.0f)}));
  const float sum = std::exp(-3.0f) + std::exp(-2.0f) + 1;
  EXPECT_THAT(nn::Softmax()(x).ToFloats(),
              Pointwise(FloatNear(1e-6f), {std::exp(-3.0f) / sum, std::exp(-2.0f) / sum, 1 / sum}));
  EXPECT_THAT(nn::Softmax(0)(x).ToFloats(), Each(1.0f));
  EXPECT_EQ(nn::Flatten()(Values({2, 3, 4})).shape(), Shape({2, 12}));
}

}  // namespace
}  // namespace mpc
