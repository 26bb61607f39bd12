#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/reference_run.h"

namespace mpc::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Matmul, TransposesBiasAndActivation) {
  const reference::Tensor a = F32({2, 2}, {1, 2, 3, 4});
  const reference::Tensor b = F32({2, 2}, {5, 6, 7, 8});
  EXPECT_EQ(RunOne("matmul", {}, {a, b}, {2, 2}), (Values{19, 22, 43, 50}));
  EXPECT_EQ(RunOne("matmul", {{"transpose_a", true}}, {a, b}, {2, 2}), (Values{26, 30, 38, 44}));
  EXPECT_EQ(RunOne("matmul", {{"transpose_b", true}}, {a, b}, {2, 2}), (Values{17, 23, 39, 53}));
  EXPECT_EQ(RunOne("matmul", {{"activation", std::string("relu")}}, {a, b, F32({2}, {-20, 1})}, {2, 2}),
            (Values{0, 23, 23, 51}));
}

TEST(Conv2d, SameStridedWithBias) {
  // 3x3 ones on a 3x3 ramp, same padding, stride 2: the four corners.
  const reference::Tensor x = F32({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const reference::Tensor weight = F32({1, 1, 3, 3}, Values(9, 1));
  EXPECT_EQ(RunOne("conv2d", {{"pad_mode", std::string("same")}, {"strides", Ints{2, 2}}}, {x, weight, F32({1}, {100})},
                   {1, 1, 2, 2}),
            (Values{112, 116, 124, 128}));
}

TEST(Conv2d, GroupsSeeTheirOwnChannels) {
  const reference::Tensor x = F32({1, 2, 1, 1}, {3, 5});
  const reference::Tensor weight = F32({2, 1, 1, 1}, {10, 100});
  EXPECT_EQ(RunOne("conv2d", {{"groups", std::int64_t{2}}}, {x, weight}, {1, 2, 1, 1}), (Values{30, 500}));
}

TEST(Conv2d, DataFormatsAgree) {
  // x[0, c, 0, j] = 10 c + j, weight picks channel 1 at the right tap.
  const reference::Tensor nchw = F32({1, 2, 1, 3}, {0, 1, 2, 10, 11, 12});
  const reference::Tensor nhwc = F32({1, 1, 3, 2}, {0, 10, 1, 11, 2, 12});
  const reference::Tensor weight = F32({1, 2, 1, 2}, {0, 0, 0, 1});
  EXPECT_EQ(RunOne("conv2d", {}, {nchw, weight}, {1, 1, 1, 2}), (Values{11, 12}));
  EXPECT_EQ(RunOne("conv2d", {{"data_format", std::string("NHWC")}}, {nhwc, weight}, {1, 1, 2, 1}), (Values{11, 12}));
}

TEST(MaxPool2d, IndicesAreTheFirstLargestAndPaddingNeverWins) {
  const Attributes attributes = {{"kernel_size", Ints{2, 2}},
                                 {"strides", Ints{2, 2}},
                                 {"pad_mode", std::string("pad")},
                                 {"padding", Ints{1, 1, 1, 1}}};
  const TensorSpec result{DType::kF32, {1, 1, 2, 2}};
  const auto y = RunReference("max_pool2d", attributes, {F32({1, 1, 2, 2}, {-1, -2, -3, -4})},
                              {result, {DType::kI8, {1, 1, 2, 2}}});
  EXPECT_EQ(y[0].values, (Values{-1, -2, -3, -4}));
  EXPECT_EQ(y[1].values, (Values{3, 2, 1, 0})) << "positions count from the window's first element, padding included";
}

TEST(MaxPool2d, NaNWinsAndTiesGoToTheFirst) {
  const Attributes attributes = {{"kernel_size", Ints{1, 4}}};
  const auto winner = [&](Values x) {
    return RunReference("max_pool2d", attributes, {F32({1, 1, 1, 4}, std::move(x))},
                        {{DType::kF32, {1, 1, 1, 1}}, {DType::kI8, {1, 1, 1, 1}}})[1]
        .values[0];
  };
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(winner({1, 5, 5, 2}), 1);
  EXPECT_EQ(winner({infinity, kNaN, kNaN, 2}), 1);
  EXPECT_EQ(winner({-infinity, -infinity, -infinity, -infinity}), 0);
}

TEST(AvgPool2d, CountsPaddingOrNot) {
  Attributes attributes = {{"kernel_size", Ints{2, 2}},
                           {"strides", Ints{2, 2}},
                           {"pad_mode", std::string("pad")},
                           {"padding", Ints{1, 1, 1, 1}}};
  const reference::Tensor x = F32({1, 1, 2, 2}, {4, 8, 12, 16});
  EXPECT_EQ(RunOne("avg_pool2d", attributes, {x}, {1, 1, 2, 2}), (Values{1, 2, 3, 4}));
  attributes.Set("count_include_pad", false);
  EXPECT_EQ(RunOne("avg_pool2d", attributes, {x}, {1, 1, 2, 2}), (Values{4, 8, 12, 16}));
}

Attributes Resizing(const char* interpolation, const char* coordinates) {
  return {{"interpolation", std::string(interpolation)}, {"coordinates", std::string(coordinates)}};
}

// The values of PyTorch's documentation of nn.Upsample.
TEST(Resize, GivesThePixelsOfUpsample) {
  const reference::Tensor x = F32({1, 1, 2, 2}, {1, 2, 3, 4});
  const auto resized = [&](const char* interpolation, const char* coordinates) {
    return RunOne("resize", Resizing(interpolation, coordinates), {x}, {1, 1, 4, 4});
  };
  EXPECT_EQ(resized("nearest", "asymmetric"), (Values{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
  EXPECT_EQ(resized("nearest", "half_pixel"), (Values{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
  EXPECT_EQ(resized("bilinear", "half_pixel"), (Values{1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5,  //
                                                       2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4}));
  ExpectNear(
      resized("bilinear", "align_corners"),
      {1, 4.0 / 3, 5.0 / 3, 2, 5.0 / 3, 2, 7.0 / 3, 8.0 / 3, 7.0 / 3, 8.0 / 3, 3, 10.0 / 3, 3, 10.0 / 3, 11.0 / 3, 4},
      1e-6);
}

TEST(Resize, ChoosesPixelsAsTheCoordinatesSay) {
  const auto resized = [](const char* interpolation, const char* coordinates, std::int64_t from, std::int64_t to) {
    reference::Tensor x = F32({1, 1, 1, from}, {});
    for (std::int64_t i = 0; i < from; ++i) x.values.push_back(static_cast<double>(i));
    return RunOne("resize", Resizing(interpolation, coordinates), {x}, {1, 1, 1, to});
  };
  EXPECT_EQ(resized("nearest", "asymmetric", 5, 3), (Values{0, 1, 3}));
  EXPECT_EQ(resized("nearest", "half_pixel", 5, 3), (Values{0, 2, 4}));
  EXPECT_EQ(resized("nearest", "align_corners", 4, 3), (Values{0, 2, 3})) << "a half is rounded up";
  EXPECT_EQ(resized("bilinear", "asymmetric", 2, 4), (Values{0, 0.5, 1, 1}));
  EXPECT_EQ(resized("bilinear", "half_pixel", 6, 2), (Values{1, 4}));
  EXPECT_EQ(resized("bilinear", "half_pixel", 4, 1), (Values{1.5}));
  EXPECT_EQ(resized("bilinear", "align_corners", 4, 1), (Values{0}));
}

TEST(Resize, TakesNothingFromAPixelOfWeightZero) {
  const double infinity = std::numeric_limits<double>::infinity();
  const reference::Tensor x = F32({1, 1, 1, 3}, {1, infinity, kNaN});
  const Values y = RunOne("resize", Resizing("bilinear", "align_corners"), {x}, {1, 1, 1, 5});
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], infinity);
  EXPECT_EQ(y[2], infinity);
}

TEST(Softmax, SurvivesLargeLogits) {
  const double e = std::exp(-1.0);
  ExpectNear(RunOne("softmax", {}, {F32({1, 2}, {1000, 999})}, {1, 2}), {1 / (1 + e), e / (1 + e)});
  ExpectNear(RunOne("log_softmax", {{"axis", std::int64_t{0}}}, {F32({2}, {1000, 999})}, {2}),
             {-std::log(1 + e), -1 - std::log(1 + e)});
}

TEST(SoftmaxCrossEntropy, SparseEqualsOneHotForEveryReduction) {
  const reference::Tensor logits = F32({2, 3}, {1, 2, 3, 0, 0, 0});
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) - 3;
  const double second = std::log(3.0);
  for (const reference::Tensor& labels : {I32({2}, {2, 0}), I64({2}, {2, 0}), F32({2, 3}, {0, 0, 1, 1, 0, 0})}) {
    const auto loss = [&](const char* reduction, Shape shape) {
      return RunReference("softmax_cross_entropy", {{"reduction", std::string(reduction)}}, {logits, labels},
                          {{DType::kF32, std::move(shape)}, {DType::kF32, {2}}})[0]
          .values;
    };
    ExpectNear(loss("none", {2}), {first, second});
    ExpectNear(loss("mean", {}), {(first + second) / 2});
    ExpectNear(loss("sum", {}), {first + second});
  }
}

TEST(SoftmaxCrossEntropy, LabelOutOfRangeIsNaN) {
  const auto results =
      RunReference("softmax_cross_entropy", {{"reduction", std::string("none")}},
                   {F32({3, 2}, {1, 2, 3, 4, 5, 6}), I32({3}, {2, -1, 1})}, {{DType::kF32, {3}}, {DType::kF32, {3}}});
  EXPECT_TRUE(std::isnan(results[0].values[0]) && std::isnan(results[0].values[1]));
  EXPECT_TRUE(std::isfinite(results[0].values[2]));
}

TEST(SoftmaxCrossEntropy, WhatLiesBehindTheClassesCountsForNothing) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Attributes two = {{"reduction", std::string("none")}, {"classes", std::int64_t{2}}};
  const Attributes all = {{"reduction", std::string("none")}};
  const TensorSpec loss{DType::kF32, {3}};
  const std::vector<reference::Tensor> padded = {F32({3, 4}, {1, 2, nan, 9, 3, -4, 1e30, nan, 5, 6, 7, 8}),
                                                 I32({3}, {1, 0, 2})};
  const std::vector<reference::Tensor> whole = {F32({3, 2}, {1, 2, 3, -4, 5, 6}), I32({3}, {1, 0, 2})};
  const auto results = RunReference("softmax_cross_entropy", two, padded, {loss, loss});
  const auto expected = RunReference("softmax_cross_entropy", all, whole, {loss, loss});
  EXPECT_EQ(results[1].values, expected[1].values);
  for (const std::size_t row : {0, 1}) EXPECT_EQ(results[0].values[row], expected[0].values[row]);
  EXPECT_TRUE(std::isnan(results[0].values[2])) << "no class has the label";

  const reference::Tensor dloss = F32({3}, {1, 2, 3});
  const Values gradient = RunOne("softmax_cross_entropy_grad", two, {dloss, padded[0], padded[1], results[1]}, {3, 4});
  const Values of_two = RunOne("softmax_cross_entropy_grad", all, {dloss, whole[0], whole[1], results[1]}, {3, 2});
  EXPECT_EQ(gradient, (Values{of_two[0], of_two[1], 0, 0, of_two[2], of_two[3], 0, 0, of_two[4], of_two[5], 0, 0}));
}

TEST(Mse, Reductions) {
  const std::vector<reference::Tensor> operands = {F32({2}, {1, 5}), F32({2}, {3, 2})};
  EXPECT_EQ(RunOne("mse", {{"reduction", std::string("none")}}, operands, {2}), (Values{4, 9}));
  EXPECT_EQ(RunOne("mse", {}, operands, {}), (Values{6.5}));
  EXPECT_EQ(RunOne("mse", {{"reduction", std::string("sum")}}, operands, {}), (Values{13}));
}

TEST(Dropout, DerivativeDrawsTheSameMask) {
  const Attributes attributes = {{"p", 0.5}, {"call_site", std::int64_t{1}}};
  const auto mask = [&](double step) {
    return RunOne("dropout", attributes, {F32({64}, Values(64, 1)), I64({}, {9}), I32({}, {step})}, {64});
  };
  EXPECT_EQ(mask(3), mask(3));
  EXPECT_NE(mask(3), mask(4));
  for (double value : mask(3)) EXPECT_TRUE(value == 0 || value == 2);
}

}  // namespace
}  // namespace mpc::test
