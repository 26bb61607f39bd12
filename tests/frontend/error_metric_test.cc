// Metrics that are means of errors: MAE, MSE and perplexity.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "frontend/train/error_metrics.h"
#include "frontend/train/loss_metrics.h"
#include "tests/frontend/error_of.h"

namespace mpc {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;

const Tensor kNoLoss = Tensor::Scalar(0.0f);

Tensor DrawnValues(const Shape& shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> value(-2, 2);
  std::vector<float> values(static_cast<std::size_t>(NumElements(shape)));
  for (float& v : values) v = value(generator);
  return Tensor::From(values, shape);
}

TEST(ErrorMetrics, SumsOverElementsAreDividedByRows) {
  const Tensor predictions = Tensor::From<float>({1, 2, 3, 4}, {2, 2});
  const Tensor labels = Tensor::From<float>({0, 0, 5, 4}, {2, 2});
  MAE mae, mae_of_elements({.per_element = true});
  MSE mse;
  for (Metric* metric : std::initializer_list<Metric*>{&mae, &mae_of_elements, &mse}) {
    ASSERT_TRUE(metric->Update(kNoLoss, predictions, labels).ok());
  }
  EXPECT_EQ(*mae.Eval(), 5. / 2);
  EXPECT_EQ(*mae_of_elements.Eval(), 5. / 4);
  EXPECT_EQ(*mse.Eval(), 9. / 2);
  ASSERT_TRUE(mae.Update(kNoLoss, Tensor::Full({2, 1}, 4), Tensor::Full({2}, 3, DType::kI32)).ok());
  EXPECT_EQ(*mae.Eval(), 7. / 4);
}

TEST(ErrorMetrics, EmptyNanAndErrors) {
  MSE mse;
  EXPECT_EQ(mse.Eval().status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(ErrorOf(mse.Update(kNoLoss, Tensor::Zeros({2, 3}), Tensor::Zeros({2}))),
              HasSubstr("labels tensor<2xf32> do not match predictions tensor<2x3xf32>"));
  EXPECT_FALSE(mse.Update(kNoLoss, Tensor(), Tensor()).ok());
  EXPECT_FALSE(mse.Eval().ok()) << "a refused batch leaves no trace";
  ASSERT_TRUE(mse.Update(kNoLoss, Tensor::Full({1}, NAN), Tensor::Zeros({1})).ok());
  EXPECT_TRUE(std::isnan(*mse.Eval()));
  mse.Clear();
  EXPECT_FALSE(mse.Eval().ok());
}

TEST(ErrorMetrics, MergeIsTheWholeWithinTheRoundingOfSums) {
  MSE whole, first, second;
  double sum = 0;
  for (unsigned seed = 0; seed < 6; ++seed) {
    const Tensor predictions = DrawnValues({5, 4}, seed);
    const Tensor labels = DrawnValues({5, 4}, seed + 100);
    for (MSE* metric : {&whole, seed % 2 == 0 ? &first : &second}) {
      ASSERT_TRUE(metric->Update(kNoLoss, predictions, labels).ok());
    }
    for (std::size_t i = 0; i < 20; ++i) {
      const double difference = double{predictions.ToFloats()[i]} - double{labels.ToFloats()[i]};
      sum += difference * difference;
    }
  }
  ASSERT_TRUE(first.Merge(second).ok());
  // Sums of 120 terms that are not negative, in two orders: each addition rounds by 2^-53 of the sum at most.
  const double bound = 2 * 121 * std::ldexp(*whole.Eval(), -53);
  EXPECT_NEAR(*whole.Eval(), sum / 30, bound);
  EXPECT_NEAR(*first.Eval(), *whole.Eval(), bound);
  EXPECT_EQ(ErrorOf(first.Merge(MAE())), "MSE(per_element = false) does not merge with MAE(per_element = false)");
  EXPECT_THAT(ErrorOf(first.Merge(MSE({.per_element = true}))), HasSubstr("MSE(per_element = true)"));
}

TEST(Perplexity, IsTheNumberOfEquallyLikelyClasses) {
  Perplexity perplexity;
  ASSERT_TRUE(perplexity.Update(kNoLoss, Tensor::Zeros({2, 3, 7}), Tensor::Zeros({2, 3}, DType::kI32)).ok());
  // exp and log are within a unit in the last place of 7 and log 7.
  EXPECT_NEAR(*perplexity.Eval(), 7, 7 * 8 * std::ldexp(1.0, -52));
}

TEST(Perplexity, IgnoresALabelAndNamesOthersOutOfRange) {
  const Tensor logits = Tensor::From<float>({0, 0, 100, 0, 0, 100}, {3, 2});
  Perplexity perplexity({.ignore_label = -1});
  ASSERT_TRUE(perplexity.Update(kNoLoss, logits, Tensor::From<std::int64_t>({0, -1, -1}, {3})).ok());
  EXPECT_NEAR(*perplexity.Eval(), 2, 2 * 8 * std::ldexp(1.0, -52));
  EXPECT_THAT(ErrorOf(perplexity.Update(kNoLoss, logits, Tensor::From<std::int64_t>({0, -1, 2}, {3}))),
              HasSubstr("label 2 in row 2 is out of range: there are 2 classes"));
  EXPECT_THAT(ErrorOf(perplexity.Update(kNoLoss, logits, Tensor::Zeros({3}))),
              HasSubstr("labels tensor<3xf32> do not match predictions tensor<3x2xf32>: expected 3 integers"));
  perplexity.Clear();
  ASSERT_TRUE(perplexity.Update(kNoLoss, logits, Tensor::Full({3}, -1, DType::kI32)).ok());
  EXPECT_EQ(perplexity.Eval().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Perplexity, ANanLogitIsNan) {
  Perplexity perplexity;
  const Tensor logits = Tensor::From<float>({0, NAN}, {1, 2});
  ASSERT_TRUE(perplexity.Update(kNoLoss, logits, Tensor::Zeros({1}, DType::kI32)).ok());
  EXPECT_TRUE(std::isnan(*perplexity.Eval()));
}

TEST(Perplexity, AgreesWithItsFormulaAndMerges) {
  Perplexity whole, first, second;
  double sum = 0;
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Tensor logits = DrawnValues({8, 5}, seed);
    std::vector<std::int32_t> labels(8);
    for (std::size_t row = 0; row < 8; ++row) labels[row] = static_cast<std::int32_t>((row + seed) % 5);
    for (Perplexity* metric : {&whole, seed < 3 ? &first : &second}) {
      ASSERT_TRUE(metric->Update(kNoLoss, logits, Tensor::From(labels, {8})).ok());
    }
    const std::vector<float> values = logits.ToFloats();
    for (std::size_t row = 0; row < 8; ++row) {
      double terms = 0;
      for (std::size_t c = 0; c < 5; ++c) terms += std::exp(double{values[5 * row + c]});
      sum += std::log(terms) - values[5 * row + static_cast<std::size_t>(labels[row])];
    }
  }
  ASSERT_TRUE(first.Merge(second).ok());
  // A relative error of exp is the absolute one of its argument, a mean of 32 terms below 8. Each term and each sum
  // rounds by 8 units of 2^-53 of it at most.
  const double bound = *whole.Eval() * 8 * 2 * 32 * std::ldexp(1.0, -53);
  EXPECT_NEAR(*first.Eval(), *whole.Eval(), bound);
  EXPECT_NEAR(*whole.Eval(), std::exp(sum / 32), bound);
  EXPECT_EQ(ErrorOf(first.Merge(Perplexity({.ignore_label = 0}))),
            "Perplexity(ignore_label = none) does not merge with Perplexity(ignore_label = 0)");
}

}  // namespace
}  // namespace mpc
