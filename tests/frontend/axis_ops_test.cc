// Functions of axes and windows that are made of operations that exist.
#include "frontend/graph/axis_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "frontend/nn/composed_layers.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::DistinctValues;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using testing::GradientOfSum;
using ::testing::HasSubstr;
using ::testing::IsNan;
using testing::kInfinity;
using ::testing::Pointwise;
using testing::Values;

TEST(AxisOps, AxesOfExtentOneComeAndGo) {
  const Tensor x = Values({2, 3});
  EXPECT_EQ(expand_dims(x, 0).shape(), Shape({1, 2, 3}));
  EXPECT_EQ(expand_dims(x, -1).shape(), Shape({2, 3, 1}));
  EXPECT_EQ(unsqueeze(x, 1).shape(), Shape({2, 1, 3}));
  EXPECT_EQ(expand_dims(Tensor::Scalar(1.0f), 0).shape(), Shape({1}));
  EXPECT_THAT(ErrorOf(expand_dims(x, 3)), HasSubstr("expand_dims axis 3 is outside [-3, 2]"));
  const Tensor y = Values({1, 2, 1, 3});
  EXPECT_EQ(squeeze(y).shape(), Shape({2, 3}));
  EXPECT_EQ(squeeze(y, {-2}).shape(), Shape({1, 2, 3}));
  EXPECT_EQ(squeeze(y, {0, 2}).ToFloats(), y.ToFloats());
  EXPECT_EQ(squeeze(Values({1, 1})).shape(), Shape{});
  EXPECT_THAT(ErrorOf(squeeze(y, {1})), HasSubstr("squeeze takes axes of extent 1, got axis 1 of tensor<1x2x1x3xf32>"));
  EXPECT_THAT(ErrorOf(squeeze(y, {0, -4})), HasSubstr("squeeze takes distinct axes in [-4, 3]"));
  ExpectGradient([](const Tensor& x) { return squeeze(expand_dims(x, 1) * 2.0, {1}); }, x);
}

TEST(AxisOps, FlipReversesAxes) {
  const Tensor x = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  EXPECT_THAT(flip(x, {0}).ToFloats(), ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(flip(x, {-1}).ToFloats(), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(flip(x, {0, 1}).ToFloats(), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_EQ(flip(x, {}).ToFloats(), x.ToFloats());
  const Tensor deep = Values({2, 3, 4});
  EXPECT_EQ(flip(flip(deep, {1}), {1}).ToFloats(), deep.ToFloats());
  EXPECT_EQ(flip(deep, {2}).ToFloats()[0], deep.ToFloats()[3]);
  EXPECT_THAT(flip(Tensor::From<std::int64_t>({7, 8}, {2}), {0}).ToFloats(), ElementsAre(8, 7));
  EXPECT_THAT(ErrorOf(flip(x, {2})), HasSubstr("flip takes distinct axes in [-2, 1] of tensor<2x3xf32>, got [2]"));
  ExpectGradient([](const Tensor& x) { return flip(x, {0, 2}); }, deep);
}

TEST(AxisOps, ArgminIsTheFirstOfTheSmallest) {
  const Tensor x = Tensor::From({3.0f, 1.0f, 1.0f, 5.0f, testing::kNan, 2.0f}, {2, 3});
  EXPECT_THAT(argmin(x).ToFloats(), ElementsAre(1, 1)) << "a NaN is the smallest";
  EXPECT_THAT(argmin(x, 0).ToFloats(), ElementsAre(0, 1, 0));
  EXPECT_EQ(argmin(x).dtype(), DType::kI32);
  // It negates x, and the least integer has no negative.
  EXPECT_THAT(ErrorOf(argmin(Tensor::From<std::int32_t>({3, std::numeric_limits<std::int32_t>::min()}, {2}))),
              HasSubstr("argmax does not take tensor<2xi32> as operand 0"));
}

TEST(AxisOps, LogsumexpDoesNotOverflow) {
  const Tensor x = Tensor::From({0.0f, std::log(3.0f), 1000.0f, 1000.0f, -1000.0f, -1000.0f}, {3, 2});
  const float two = std::log(2.0f);
  EXPECT_THAT(logsumexp(x, {1}).ToFloats(), Pointwise(FloatNear(1e-4f), {2 * two, 1000 + two, -1000 + two}));
  EXPECT_EQ(logsumexp(x, {-1}, /*keep_dims=*/true).shape(), Shape({3, 1}));
  EXPECT_EQ(logsumexp(x).shape(), Shape{});
  EXPECT_NEAR(logsumexp(x).Item<float>(), 1000 + two, 1e-4);
  EXPECT_EQ(logsumexp(Values({2, 3, 4}), {0, 2}).shape(), Shape({3}));
  ExpectGradient([](const Tensor& x) { return logsumexp(x, {1}); }, Values({2, 3}));
}

TEST(AxisOps, LogsumexpOfInfiniteElements) {
  const Tensor x = Tensor::From({-kInfinity, -kInfinity, -kInfinity, 2.0f, kInfinity, 1.0f}, {3, 2});
  EXPECT_THAT(logsumexp(x, {1}).ToFloats(), ElementsAre(-kInfinity, 2, kInfinity));
  GradientOfSum step([](const Tensor& x) { return logsumexp(x, {1}); }, {3, 2});
  const std::vector<float> gradient = step(x).ToFloats(), weights = Values({3}, 9).ToFloats();
  // The derivative is softmax(x). PyTorch has it for a row of minus infinity, too: zeros.
  EXPECT_THAT(std::vector<float>(gradient.begin(), gradient.begin() + 4), ElementsAre(0, 0, 0, weights[1]));
  EXPECT_EQ(gradient[5], 0);
}

TEST(AxisOps, GatherElementsReadsAlongAnAxis) {
  // torch.gather's example.
  const Tensor x = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  EXPECT_THAT(gather_elements(x, 1, Tensor::From<std::int64_t>({0, 0, 1, 0}, {2, 2})).ToFloats(),
              ElementsAre(1, 1, 4, 3));
  EXPECT_THAT(gather_elements(x, 0, Tensor::From<std::int32_t>({1, 0, 0}, {3, 1})).ToFloats(), ElementsAre(3, 1, 1));
  EXPECT_THAT(gather_elements(x, -1, Tensor::From<std::int32_t>({2, -1}, {2, 1})).ToFloats(),
              ElementsAre(IsNan(), IsNan()));
  // By the definition, on another tensor.
  const Tensor deep = Values({3, 4, 5});
  const Tensor indices = Tensor::From<std::int32_t>({3, 0, 2, 1, 1, 2, 0, 3, 3, 2, 1, 0}, {2, 2, 3});
  const std::vector<float> from = deep.ToFloats(), at = indices.ToFloats();
  std::vector<float> expected;
  for (std::size_t i = 0; i < at.size(); ++i) {
    expected.push_back(from[(i / 6 * 4 + static_cast<std::size_t>(at[i])) * 5 + i % 3]);
  }
  EXPECT_EQ(gather_elements(deep, 1, indices).ToFloats(), expected);
  ExpectGradient([&](const Tensor& x) { return gather_elements(x, 1, indices); }, deep);
  EXPECT_THAT(ErrorOf(gather_elements(x, 2, indices)), HasSubstr("gather_elements axis 2 is none of"));
  EXPECT_THAT(ErrorOf(gather_elements(x, 0, Values({2, 2}))), HasSubstr("takes indices of i32 or i64"));
  EXPECT_THAT(ErrorOf(gather_elements(x, 0, Tensor::Zeros({1, 3}, DType::kI32))),
              HasSubstr("no longer than x on axes other than 0, got x tensor<2x2xf32> and indices tensor<1x3xi32>"));
}

TEST(AxisOps, PixelShuffleMakesSquaresOfChannels) {
  const Tensor x = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f, 7.0f, 8.0f}, {1, 4, 1, 2});
  const Tensor y = nn::PixelShuffle(2)(x);
  EXPECT_EQ(y.shape(), Shape({1, 1, 2, 4}));
  EXPECT_THAT(y.ToFloats(), ElementsAre(1, 3, 2, 4, 5, 7, 6, 8));
  EXPECT_EQ(pixel_shuffle(Values({2, 18, 4, 5}), 3).shape(), Shape({2, 2, 12, 15}));
  EXPECT_THAT(ErrorOf(pixel_shuffle(x, 3)), HasSubstr("pixel_shuffle takes an image [N, C r^2, H, W]"));
  ExpectGradient([](const Tensor& x) { return pixel_shuffle(x, 2); }, Values({1, 4, 2, 1}));
}

TEST(AxisOps, PoolsOfSequences) {
  const Tensor x = Tensor::From({1.0f, 5.0f, 2.0f, 4.0f, 3.0f}, {1, 1, 5});
  EXPECT_THAT(max_pool1d(x).ToFloats(), ElementsAre(5, 4));
  EXPECT_THAT(max_pool1d(x, {.kernel_size = 3, .stride = 1}).ToFloats(), ElementsAre(5, 5, 4));
  EXPECT_THAT(avg_pool1d(x).ToFloats(), ElementsAre(3, 3));
  const Pool1dOpOptions padded{.kernel_size = 2, .stride = 2, .pad_mode = "pad", .padding = {1, 0}};
  EXPECT_THAT(avg_pool1d(x, padded).ToFloats(), ElementsAre(0.5, 3.5, 3.5));
  EXPECT_EQ(max_pool1d(Values({2, 3, 7}), {.pad_mode = "same"}).shape(), Shape({2, 3, 4}));
  EXPECT_THAT(ErrorOf(max_pool1d(Values({3, 7}))), HasSubstr("max_pool1d takes sequences [N, C, L], got"));
  EXPECT_THAT(ErrorOf(avg_pool1d(x, {.padding = {1}})), HasSubstr("avg_pool1d takes a padding of two values"));
  ExpectGradient([](const Tensor& x) { return max_pool1d(x, {.kernel_size = 3, .stride = 2}); },
                 DistinctValues({1, 2, 7}));
  ExpectGradient([](const Tensor& x) { return avg_pool1d(x, {.kernel_size = 3, .stride = 2}); }, Values({1, 2, 7}));
}

TEST(ComposedActivations, HaveTheValuesOfTheirFormulas) {
  const Tensor x = Tensor::From({-4.0f, -1.5f, 0.0f, 1.5f, 7.0f}, {1, 5});
  EXPECT_THAT(nn::ReLU6()(x).ToFloats(), ElementsAre(0, 0, 0, 1.5, 6));
  EXPECT_THAT(nn::HSigmoid()(x).ToFloats(), Pointwise(FloatNear(1e-6f), {0.0f, 0.25f, 0.5f, 0.75f, 1.0f}));
  EXPECT_EQ(nn::LogSoftmax()(x).ToFloats(), log_softmax(x).ToFloats());
  EXPECT_EQ(nn::LogSoftmax(0)(x).ToFloats(), std::vector<float>(5, 0));
  ExpectGradient([](const Tensor& x) { return nn::HSigmoid()(x); }, x);
  ExpectGradient([](const Tensor& x) { return nn::ReLU6()(x + 0.5); }, x);
}

}  // namespace
}  // namespace mpc
