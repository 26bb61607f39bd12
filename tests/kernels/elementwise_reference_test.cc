#include <cmath>
#include <limits>

#include "tests/kernels/reference_run.h"

namespace mpc::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Registry, UnknownOperationIsNotFound) {
  EXPECT_EQ(reference::Find("no_such_op"), nullptr);
  EXPECT_EQ(reference::Run("no_such_op", {}, {}, {}).code(), absl::StatusCode::kNotFound);
}

TEST(Elementwise, UnaryFormulas) {
  ExpectNear(RunOne("relu", {}, {F32({3}, {-1, 0, 2})}, {3}), {0, 0, 2});
  ExpectNear(RunOne("sigmoid", {}, {F32({2}, {0, 1})}, {2}), {0.5, 1 / (1 + std::exp(-1.0))});
  EXPECT_TRUE(std::isnan(RunOne("relu", {}, {F32({1}, {kNaN})}, {1})[0]));
  EXPECT_FALSE(std::signbit(RunOne("relu", {}, {F32({1}, {-0.0})}, {1})[0])) << "max(-0, +0) is +0";
}

TEST(Elementwise, BroadcastsFromTheRight) {
  ExpectNear(RunOne("sub", {}, {F32({2, 1}, {10, 20}), F32({3}, {1, 2, 3})}, {2, 3}), {9, 8, 7, 19, 18, 17});
}

TEST(Elementwise, MaximumPropagatesNaN) {
  const Values y = RunOne("maximum", {}, {F32({3}, {kNaN, 1, 1}), F32({3}, {1, kNaN, 2})}, {3});
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[1]));
  EXPECT_EQ(y[2], 2);
}

TEST(Elementwise, MaximumGradSharesTies) {
  const auto grads = RunReference("maximum_grad", {}, {F32({3}, {4, 4, 4}), F32({3}, {1, 2, 3}), F32({1}, {2})},
                                  {{DType::kF32, {3}}, {DType::kF32, {3}}});
  EXPECT_EQ(grads[0].values, (Values{0, 2, 4}));
  EXPECT_EQ(grads[1].values, (Values{4, 2, 0}));
}

TEST(Elementwise, LowResultsRoundOnce) {
  // 60000 + 10000 is beyond f16; the sum of all three is not (AMP-9).
  const auto y =
      RunReference("sum_n", {}, {F16({1}, {60000}), F16({1}, {10000}), F16({1}, {-20000})}, {{DType::kF16, {1}}});
  EXPECT_EQ(y[0].values[0], 49984);  // 50000 is half way between two multiples of 32; 1562 is the even one
}

TEST(Elementwise, ScalarsStayF32) {
  // 1e-8 is zero in f16; as an f32 constant it scales.
  const auto y = RunReference("mul_scalar", {{"value", 1e-8}}, {F16({1}, {60000})}, {{DType::kF16, {1}}});
  EXPECT_NEAR(y[0].values[0], 6e-4, 6e-4 * 0x1p-11);
}

TEST(Elementwise, CastRoundsToNearestEven) {
  const auto y = RunReference("cast", {}, {F32({4}, {2049, 2051, 65520, 1e-9})}, {{DType::kF16, {4}}});
  EXPECT_EQ(y[0].values, (Values{2048, 2052, std::numeric_limits<double>::infinity(), 0}));
}

TEST(Elementwise, ACastOfF64RoundsOnce) {
  // Both lie just above the middle of two numbers. f32 would give the middle, and the tie the even one below.
  const reference::Tensor half{{DType::kF64, {1}}, {1.000488281251}}, bfloat{{DType::kF64, {1}}, {1.00390625001}};
  const auto cast = [](const reference::Tensor& x, DType to) {
    return RunReference("cast", {}, {x}, {{to, {1}}}, reference::Rounding::kStorage)[0].values[0];
  };
  EXPECT_EQ(cast(half, DType::kF16), 1 + 0x1p-10);
  EXPECT_EQ(cast(bfloat, DType::kBF16), 1 + 0x1p-7);
}

TEST(Elementwise, SelectTakesScalarConditions) {
  EXPECT_EQ(RunOne("select", {}, {Bool({}, {0}), F32({2}, {1, 2}), F32({2}, {3, 4})}, {2}), (Values{3, 4}));
  EXPECT_EQ(RunOne("select", {}, {Bool({2}, {1, 0}), F32({2}, {1, 2}), F32({2}, {3, 4})}, {2}), (Values{1, 4}));
}

TEST(DataMovement, TransposeTakesResultAxesFromThePermutation) {
  EXPECT_EQ(RunOne("transpose", {{"permutation", Ints{1, 0}}}, {F32({2, 3}, {1, 2, 3, 4, 5, 6})}, {3, 2}),
            (Values{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(RunOne("transpose", {{"permutation", Ints{2, 0, 1}}}, {F32({1, 2, 2}, {1, 2, 3, 4})}, {2, 1, 2}),
            (Values{1, 3, 2, 4}));
}

TEST(Reductions, SumAndMeanOverAxes) {
  const reference::Tensor x = F32({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(RunOne("reduce_sum", {{"axes", Ints{0}}}, {x}, {3}), (Values{5, 7, 9}));
  EXPECT_EQ(RunOne("reduce_sum", {{"axes", Ints{1}}, {"keep_dims", true}}, {x}, {2, 1}), (Values{6, 15}));
  EXPECT_EQ(RunOne("reduce_mean", {{"axes", Ints{}}}, {x}, {}), (Values{3.5}));
}

TEST(Reductions, ArgmaxTakesTheFirstOfEqualsAndNaNAsLargest) {
  const auto argmax = [](Shape shape, Values values, std::int64_t axis, Shape result) {
    return RunReference("argmax", {{"axis", axis}}, {F32(std::move(shape), std::move(values))},
                        {{DType::kI32, std::move(result)}})[0]
        .values;
  };
  EXPECT_EQ(argmax({2, 3}, {1, 3, 3, 7, 2, 7}, -1, {2}), (Values{1, 0}));
  EXPECT_EQ(argmax({2, 3}, {1, 3, 3, 7, 2, 7}, 0, {3}), (Values{1, 0, 1}));
  EXPECT_EQ(argmax({4}, {1, kNaN, 9, kNaN}, 0, {}), (Values{1}));
}

}  // namespace
}  // namespace mpc::test
