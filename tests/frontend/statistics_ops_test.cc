// Variances, norms and cosines: values beside formulas in f64, derivatives, the ends of f16, errors.
#include "frontend/graph/statistics_ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/frontend/error_of.h"
#include "tests/frontend/numeric_gradient.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using testing::GradientOfSum;
using ::testing::HasSubstr;
using testing::kInfinity;
using ::testing::Pointwise;
using testing::Values;

// Each function rounds fewer than 16 times, by 2^-24 of numbers below 4.
constexpr float kStatisticsTolerance = 0x1p-18f;

TEST(StatisticsOps, VarianceOfAxes) {
  const Tensor x = Values({3, 4, 5});
  const std::vector<float> values = x.ToFloats();
  std::vector<float> expected, roots;
  for (std::size_t j = 0; j < 4; ++j) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < 15; ++i) sum += values[(i / 5 * 4 + j) * 5 + i % 5];
    for (std::size_t i = 0; i < 15; ++i) squares += std::pow(values[(i / 5 * 4 + j) * 5 + i % 5] - sum / 15, 2);
    expected.push_back(static_cast<float>(squares / 15));
    roots.push_back(static_cast<float>(std::sqrt(squares / 14)));
  }
  EXPECT_THAT(var(x, {0, -1}).ToFloats(), Pointwise(FloatNear(kStatisticsTolerance), expected));
  EXPECT_THAT(stddev(x, {0, 2}, /*ddof=*/1).ToFloats(), Pointwise(FloatNear(kStatisticsTolerance), roots));
  EXPECT_EQ(var(x, {0, 2}, 0, /*keep_dims=*/true).shape(), Shape({1, 4, 1}));
  EXPECT_EQ(stddev(x).shape(), Shape{});
  ExpectGradient([](const Tensor& x) { return var(x, {1}, 1); }, Values({2, 3}));
  ExpectGradient([](const Tensor& x) { return stddev(x, {1}); }, Values({2, 3}));
}

TEST(StatisticsOps, NormsOfAxes) {
  const Tensor x = Tensor::From({3.0f, -4.0f, 0.0f, 0.0f, -5.0f, 12.0f}, {3, 2});
  EXPECT_THAT(norm(x, 2, {1}).ToFloats(), ElementsAre(5, 0, 13));
  EXPECT_THAT(norm(x, 1, {-1}).ToFloats(), ElementsAre(7, 0, 17));
  EXPECT_THAT(norm(x, kInfinity, {0}).ToFloats(), ElementsAre(5, 12));
  EXPECT_FLOAT_EQ(norm(x).Item<float>(), std::sqrt(194.0f));
  EXPECT_EQ(norm(x, 2, {1}, /*keep_dims=*/true).shape(), Shape({3, 1}));
  for (const double ord : {1.0, 2.0, static_cast<double>(kInfinity)}) {
    ExpectGradient([&](const Tensor& x) { return norm(x, ord, {1}); }, testing::DistinctValues({2, 3}) - 0.6f);
  }
}

TEST(StatisticsOps, TheDerivativeAtZeroIsZero) {
  const Tensor zeros = Tensor::Zeros({2, 3});
  for (const double ord : {1.0, 2.0}) {
    GradientOfSum step([&](const Tensor& x) { return norm(x, ord, {1}); }, {2, 3});
    EXPECT_THAT(step(zeros).ToFloats(), Each(0)) << ord;
  }
  GradientOfSum deviation([](const Tensor& x) { return stddev(x, {1}); }, {2, 3});
  EXPECT_THAT(deviation(zeros).ToFloats(), Each(0));
}

TEST(StatisticsOps, CosinesOfRows) {
  const Tensor a = Tensor::From({1.0f, 0.0f, 3.0f, 4.0f, 0.0f, 0.0f}, {3, 2});
  const Tensor b = Tensor::From({1.0f, 1.0f, -3.0f, -4.0f, 1.0f, 0.0f}, {3, 2});
  EXPECT_THAT(cosine_similarity(a, b).ToFloats(),
              Pointwise(FloatNear(kStatisticsTolerance), {std::sqrt(0.5f), -1.0f, 0.0f}));
  // Every row beside every other: other axes broadcast.
  EXPECT_EQ(cosine_similarity(reshape(a, {3, 1, 2}), reshape(b, {1, 3, 2}), -1).shape(), Shape({3, 3}));
  ExpectGradient([&](const Tensor& x) { return cosine_similarity(x, Values({2, 3}, 4)); }, Values({2, 3}));
}

TEST(StatisticsOps, SquaresOfF16DoNotOverflow) {
  const Tensor x = Tensor::From({300.0f, -400.0f}, {1, 2}).To(DType::kF16);
  const Tensor length = norm(x, 2, {1});
  EXPECT_EQ(length.dtype(), DType::kF16);
  EXPECT_THAT(length.ToFloats(), ElementsAre(500));
  EXPECT_THAT(stddev(x, {1}).ToFloats(), ElementsAre(350));
  EXPECT_EQ(cosine_similarity(x, x).dtype(), DType::kF16);
  EXPECT_THAT(cosine_similarity(x, x).ToFloats(), ElementsAre(1));
}

/// The lengths of rows of x, times a weight.
class Lengths : public nn::Cell {
 public:
  MPC_CELL(Lengths, weight)
  Tensor Construct(const Tensor& x) { return norm(x * weight, 2, {1}) + stddev(x * weight, {1}); }
  Parameter weight{{2}, Ones()};
};

TEST(StatisticsOps, SquaresDoNotOverflowUnderALowToFloat) {
  Lengths cell;
  cell.ToFloat(DType::kF16);
  EXPECT_THAT(cell(Tensor::From({300.0f, -400.0f}, {1, 2})).To(DType::kF32).ToFloats(), ElementsAre(850));
}

TEST(StatisticsOps, RefuseWhatTheyDoNotTake) {
  const Tensor x = Values({3, 4});
  EXPECT_THAT(ErrorOf(var(x, {1}, 4)),
              HasSubstr("var takes a ddof of 0 or more and below 4, the count of elements of a variance, got 4"));
  EXPECT_THAT(ErrorOf(stddev(x, {1}, -1)), HasSubstr("stddev takes a ddof of 0 or more and below 4"));
  EXPECT_THAT(ErrorOf(var(x, {2})), HasSubstr("2"));
  EXPECT_THAT(ErrorOf(norm(x, 3)), HasSubstr("norm takes the order 1, 2 or infinity, got 3"));
  EXPECT_THAT(ErrorOf(cosine_similarity(x, Values({3, 5}))),
              HasSubstr("cosine_similarity takes tensors of one rank and one extent of axis 1, got tensor<3x4xf32> and "
                        "tensor<3x5xf32>"));
  EXPECT_THAT(ErrorOf(cosine_similarity(x, x, 2)), HasSubstr("one extent of axis 2"));
  EXPECT_THAT(ErrorOf(cosine_similarity(x, x, 1, -1)), HasSubstr("cosine_similarity takes an epsilon"));
}

}  // namespace
}  // namespace mpc
