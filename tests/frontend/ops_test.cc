#include "frontend/graph/ops.h"

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

const Tensor kA = Tensor::From({1.0f, -2.0f, 3.0f, 4.0f}, {2, 2});
const Tensor kB = Tensor::From({2.0f, 4.0f}, {2});

TEST(Ops, ElementWiseFunctionsRunOnConcreteTensors) {
  EXPECT_THAT(relu(kA).ToFloats(), ElementsAre(1, 0, 3, 4));
  EXPECT_THAT(neg(kA).ToFloats(), ElementsAre(-1, 2, -3, -4));
  EXPECT_THAT(square(kA).ToFloats(), ElementsAre(1, 4, 9, 16));
  EXPECT_THAT(sqrt(kB).ToFloats(), Pointwise(FloatNear(1e-6f), {std::sqrt(2.0f), 2.0f}));
  EXPECT_THAT(exp(kB).ToFloats(), Pointwise(FloatNear(1e-4f), {std::exp(2.0f), std::exp(4.0f)}));
  EXPECT_THAT(log(kB).ToFloats(), Pointwise(FloatNear(1e-6f), {std::log(2.0f), std::log(4.0f)}));
  EXPECT_THAT(maximum(kA, kB).ToFloats(), ElementsAre(2, 4, 3, 4));
  EXPECT_EQ(equal(kA, kA).dtype(), DType::kBool);
  EXPECT_THAT(equal(kA, Tensor::Scalar(3.0f)).ToFloats(), ElementsAre(0, 0, 1, 0));
}

TEST(Ops, OperatorsBroadcast) {
  EXPECT_THAT((kA + kB).ToFloats(), ElementsAre(3, 2, 5, 8));
  EXPECT_THAT((kA - kB).ToFloats(), ElementsAre(-1, -6, 1, 0));
  EXPECT_THAT((kA * kB).ToFloats(), ElementsAre(2, -8, 6, 16));
  EXPECT_THAT((kA / kB).ToFloats(), ElementsAre(0.5, -0.5, 1.5, 1));
  EXPECT_THAT((kA + Tensor::From({10.0f, 20.0f}, {2, 1})).ToFloats(), ElementsAre(11, 8, 23, 24));
  EXPECT_EQ((Values({3, 1, 2}) * Values({4, 1})).shape(), Shape({3, 4, 2}));
  EXPECT_THAT((-kB).ToFloats(), ElementsAre(-2, -4));
}

TEST(Ops, ScalarsStandOnBothSides) {
  EXPECT_THAT((kB + 1.0).ToFloats(), ElementsAre(3, 5));
  EXPECT_THAT((1.0 + kB).ToFloats(), ElementsAre(3, 5));
  EXPECT_THAT((kB - 1.0).ToFloats(), ElementsAre(1, 3));
  EXPECT_THAT((1.0 - kB).ToFloats(), ElementsAre(-1, -3));
  EXPECT_THAT((2.0 * kB).ToFloats(), ElementsAre(4, 8));
  EXPECT_THAT((kB / 2.0).ToFloats(), ElementsAre(1, 2));
}

TEST(Ops, MatrixWork) {
  const Tensor c = Tensor::From({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  EXPECT_THAT(matmul(kA, c).ToFloats(), ElementsAre(-5, -6, 15, 22));
  EXPECT_THAT(matmul(kA, c, kB).ToFloats(), ElementsAre(-3, -2, 17, 26));
  EXPECT_THAT(matmul(kA, c, {}, {.transpose_a = true}).ToFloats(), ElementsAre(10, 14, 10, 12));
  EXPECT_THAT(matmul(kA, c, {}, {.transpose_b = true}).ToFloats(), ElementsAre(-3, -5, 11, 25));
  EXPECT_THAT(matmul(kA, c, {}, {.activation = "relu"}).ToFloats(), ElementsAre(0, 0, 15, 22));
  EXPECT_EQ(conv2d(Values({1, 2, 4, 4}), Values({3, 2, 3, 3})).shape(), Shape({1, 3, 2, 2})) << "valid";
  EXPECT_EQ(max_pool2d(Values({1, 2, 4, 4})).shape(), Shape({1, 2, 2, 2})) << "windows of 2";
  EXPECT_EQ(avg_pool2d(Values({1, 2, 4, 4}), {.stride = {1, 1}}).shape(), Shape({1, 2, 3, 3}));
}

TEST(Ops, DataMovement) {
  EXPECT_EQ(reshape(Values({2, 6}), {3, -1}).shape(), Shape({3, 4}));
  EXPECT_EQ(flatten(Values({2, 3, 4})).shape(), Shape({2, 12}));
  EXPECT_THAT(transpose(kA, {1, 0}).ToFloats(), ElementsAre(1, 3, -2, 4));
  EXPECT_THAT(broadcast_to(kB, {2, 2}).ToFloats(), ElementsAre(2, 4, 2, 4));
  EXPECT_THAT(sum_n({kA, kA, kA}).ToFloats(), ElementsAre(3, -6, 9, 12));
  EXPECT_THAT(stop_gradient(kB).ToFloats(), ElementsAre(2, 4));
}

TEST(Ops, ReductionsTakeNegativeAxes) {
  EXPECT_EQ(reduce_sum(kA).Item<float>(), 6.0f);
  EXPECT_EQ(reduce_mean(kA).Item<float>(), 1.5f);
  EXPECT_THAT(reduce_sum(kA, {0}).ToFloats(), ElementsAre(4, 2));
  EXPECT_THAT(reduce_mean(kA, {-1}).ToFloats(), ElementsAre(-0.5, 3.5));
  EXPECT_EQ(reduce_sum(kA, {-1}, /*keep_dims=*/true).shape(), Shape({2, 1}));
  EXPECT_THAT(argmax(kA).ToFloats(), ElementsAre(0, 1));
  EXPECT_THAT(argmax(kA, 0).ToFloats(), ElementsAre(1, 1));
  EXPECT_EQ(argmax(kA).dtype(), DType::kI32);
}

TEST(Ops, SoftmaxAndLosses) {
  const Tensor logits = Tensor::From({1.0f, 2.0f, 3.0f, 0.0f, 0.0f, 0.0f}, {2, 3});
  const std::vector<float> p = softmax(logits).ToFloats();
  EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-6);
  EXPECT_NEAR(p[4], 1.0 / 3, 1e-6);
  EXPECT_NEAR(log_softmax(logits).ToFloats()[4], -std::log(3.0), 1e-6);
  const double first = std::log(std::exp(1.0) + std::exp(2.0) + std::exp(3.0)) - 3;
  const double second = std::log(3.0);
  const Tensor sparse = Tensor::From<std::int32_t>({2, 0}, {2});
  const Tensor dense = Tensor::From({0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f}, {2, 3});
  for (const Tensor& labels : {sparse, dense}) {
    EXPECT_NEAR(softmax_cross_entropy(logits, labels).Item<double>(), (first + second) / 2, 1e-6);
    EXPECT_NEAR(softmax_cross_entropy(logits, labels, "sum").Item<double>(), first + second, 1e-6);
    EXPECT_EQ(softmax_cross_entropy(logits, labels, "none").shape(), Shape({2}));
  }
  EXPECT_EQ(mse(kA, Tensor::Zeros({2, 2})).Item<float>(), 7.5f);
  EXPECT_EQ(mse(kA, Tensor::Zeros({2, 2}), "sum").Item<float>(), 30.0f);
  EXPECT_THAT(mse(kA, Tensor::Zeros({2, 2}), "none").ToFloats(), ElementsAre(1, 4, 9, 16));
}

TEST(Ops, CastRoundsAndPromotionWidens) {
  const Tensor x = Tensor::From({1.0f + 0x1p-12f, 70000.0f}, {2});
  const Tensor low = cast(x, DType::kF16);
  EXPECT_EQ(low.dtype(), DType::kF16);
  EXPECT_THAT(low.ToFloats(), ElementsAre(1.0f, testing::kInfinity));
  EXPECT_EQ((low + x).dtype(), DType::kF32);
  EXPECT_EQ((low + low).dtype(), DType::kF16);
  EXPECT_EQ(ops::Cast(x, DType::kBF16).dtype(), DType::kBF16);
}

TEST(Ops, FillAndMap) {
  EXPECT_THAT(ops::Fill(DType::kF32, {2}, 3).ToFloats(), ElementsAre(3, 3));
  EXPECT_EQ(ops::FullLike(kA, 1).shape(), kA.shape());
  const std::vector<Tensor> halves = ops::Map([](const Tensor& x) { return x / 2.0; }, {kB, kA});
  EXPECT_THAT(halves[0].ToFloats(), ElementsAre(1, 2));
}

TEST(Ops, ErrorsAreInTheStatusOfTheResult) {
  EXPECT_THAT(ErrorOf(add(Values({2, 3}), Values({2}))), HasSubstr("tensor<2x3xf32>"));
  EXPECT_FALSE(matmul(Values({2, 3}), Values({2, 3})).status().ok());
  EXPECT_FALSE(reshape(kA, {3}).status().ok());
  EXPECT_THAT(ErrorOf(reshape(kA, {-1, -1})), HasSubstr("at most one extent of -1"));
  EXPECT_THAT(ErrorOf(reshape(kA, {3, -1})), HasSubstr("tensor<2x2xf32> has 4 elements"));
  EXPECT_FALSE(transpose(kA, {0, 0}).status().ok());
  EXPECT_FALSE(reduce_sum(kA, {2}).status().ok());
  EXPECT_FALSE(softmax_cross_entropy(kA, kB, "mean").status().ok());
  EXPECT_THAT(ErrorOf(mse(kA, kA, "average")), HasSubstr("average"));
  EXPECT_FALSE(sum_n({}).status().ok());
  EXPECT_THAT(ErrorOf(relu(Tensor())), HasSubstr("undefined"));
  // Errors go on: the first one is kept.
  EXPECT_EQ(ErrorOf(relu(add(Values({2, 3}), Values({2})))), ErrorOf(add(Values({2, 3}), Values({2}))));
}

TEST(Ops, WhatMovesElementsTakesIntegersThatF32DoesNotHold) {
  constexpr std::int64_t kOdd = (std::int64_t{1} << 60) + 1;
  const Tensor x = Tensor::From<std::int64_t>({1, kOdd, -kOdd}, {3});
  const auto values = [](const Tensor& y) {
    const auto elements = y.data<std::int64_t>();
    return std::vector<std::int64_t>(elements.begin(), elements.end());
  };
  EXPECT_THAT(values(concat({x, x})), ElementsAre(1, kOdd, -kOdd, 1, kOdd, -kOdd));
  EXPECT_THAT(values(stack({x, x}, 1)), ElementsAre(1, 1, kOdd, kOdd, -kOdd, -kOdd));
  EXPECT_THAT(values(split(x, {1, 2})[1]), ElementsAre(kOdd, -kOdd));
  EXPECT_THAT(values(slice(x, {2}, {1})), ElementsAre(-kOdd));
  EXPECT_THAT(values(pad(x, {1}, {2}, -100)), ElementsAre(-100, 1, kOdd, -kOdd, -100, -100));
  EXPECT_THAT(values(gather(x, Tensor::From<std::int32_t>({2, 3, 1}, {3}))), ElementsAre(-kOdd, 0, kOdd));
  EXPECT_THAT(values(broadcast_to(x, {2, 3})), ElementsAre(1, kOdd, -kOdd, 1, kOdd, -kOdd));
  EXPECT_THAT(values(tile(x, {2})), ElementsAre(1, kOdd, -kOdd, 1, kOdd, -kOdd));
  EXPECT_THAT(values(where(equal(x, slice(x, {0}, {1})), x, neg(x))), ElementsAre(1, -kOdd, kOdd));
  EXPECT_THAT(values(stop_gradient(x)), ElementsAre(1, kOdd, -kOdd));
}

TEST(Ops, WhatMovesElementsTakesTruthValues) {
  const Tensor x = Tensor::From({1.0f, 0.0f, 1.0f}, {3}).To(DType::kBool);
  const auto floats = [](const Tensor& y) {
    EXPECT_EQ(y.dtype(), DType::kBool) << y.status();
    return y.To(DType::kF32).ToFloats();
  };
  EXPECT_THAT(floats(concat({x, logical_not(x)})), ElementsAre(1, 0, 1, 0, 1, 0));
  EXPECT_THAT(floats(pad(x, {1}, {1}, 1)), ElementsAre(1, 1, 0, 1, 1));
  EXPECT_THAT(floats(gather(x, Tensor::From<std::int32_t>({1, -1, 2}, {3}))), ElementsAre(0, 0, 1));
  EXPECT_THAT(floats(where(x, logical_not(x), x)), ElementsAre(0, 0, 0));
  EXPECT_THAT(floats(broadcast_to(x, {2, 3})), ElementsAre(1, 0, 1, 1, 0, 1));
}

TEST(Ops, WhatMovesElementsRefusesAMixOfTypes) {
  const Tensor integers = Tensor::Zeros({2}).To(DType::kI32), longs = Tensor::Zeros({2}).To(DType::kI64);
  const Tensor mask = equal(integers, integers);
  EXPECT_THAT(ErrorOf(where(mask, integers, Values({2}))), HasSubstr("between two of one element type"));
  EXPECT_THAT(ErrorOf(where(mask, integers, longs)), HasSubstr("got tensor<2xi32> and tensor<2xi64>; cast changes it"));
  EXPECT_THAT(ErrorOf(concat({integers, longs})), HasSubstr("operands of one element type"));
  EXPECT_THAT(ErrorOf(pad(integers, {1}, {0}, 0.5)), HasSubstr("a whole number in its range, got 0.5"));
  EXPECT_THAT(ErrorOf(pad(integers, {1}, {0}, 0x1p31)), HasSubstr("a whole number in its range"));
  EXPECT_THAT(ErrorOf(pad(mask, {1}, {0}, 2)), HasSubstr("0 or 1, got 2"));
}

TEST(Ops, GradientsBelongIntoAStep) {
  testing::TwoLayers net;
  const ops::ValueAndGradResult result = ops::ValueAndGrad(net, net.TrainableParams(), {Values({2, 6})});
  EXPECT_EQ(result.value.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(result.gradients.size(), 4u);
}

}  // namespace
}  // namespace mpc
