// Losses of pairs and triplets. Expected numbers are those of PyTorch 2.15 in f32.
#include "frontend/nn/distance_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "tests/frontend/error_of.h"
#include "tests/frontend/loss_and_gradient.h"
#include "tests/frontend/numeric_gradient.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using testing::kInfinity;
using testing::kNan;
using testing::LossAndGradient;
using ::testing::Pointwise;
using testing::Values;

// Sums of three squares below 1 and their roots: fewer than 16 roundings of 2^-23.
constexpr float kDistanceTolerance = 0x1p-18f;

/// Rows of eighths from -6 to 6 whose order depends on `k`.
Tensor Rows(std::int64_t k) {
  std::vector<float> values(12);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((static_cast<std::int64_t>(i) * 5 + k) % 13 - 6) / 8;
  }
  return Tensor::From(values, {4, 3});
}

TEST(CosineEmbeddingLoss, IsPyTorchs) {
  nn::CosineEmbeddingLoss loss({.margin = 0.25, .reduction = "none"});
  const Tensor labels = Tensor::From<std::int32_t>({1, -1, 1, -1}, {4});
  EXPECT_THAT(loss(Rows(2), Rows(7), labels).ToFloats(),
              Pointwise(FloatNear(kDistanceTolerance), {1.214521f, 0.0f, 1.584236f, 0.0f}));
  EXPECT_NEAR(nn::CosineEmbeddingLoss({.margin = 0.25})(Rows(2), Rows(7), labels.To(DType::kF32)).Item<float>(),
              (1.214521f + 1.584236f) / 4, kDistanceTolerance);
  // Beyond the margin, and of a row that is no pair.
  const Tensor other = Tensor::From<std::int32_t>({-1, 0, 1, -1}, {4});
  EXPECT_THAT(loss(Rows(2), Rows(2), other).ToFloats(),
              Pointwise(FloatNear(kDistanceTolerance), {0.75f, 0.0f, 0.0f, 0.75f}));
  ExpectGradient([&](const Tensor& a) { return loss(a, Rows(7), labels); }, Rows(2));
  EXPECT_THAT(ErrorOf(loss(Rows(2), Rows(7), Values({3}))), HasSubstr("CosineEmbeddingLoss expects labels 1 and -1 of "
                                                                      "shape [4], got tensor<3xf32>"));
  EXPECT_THAT(ErrorOf(nn::CosineEmbeddingLoss({.margin = 2})(Rows(2), Rows(7), labels)),
              HasSubstr("takes a margin in [-1, 1], got 2"));
  EXPECT_THAT(ErrorOf(loss(Values({4}), Values({4}), labels)), HasSubstr("expects rows [N, D], got tensor<4xf32>"));
}

TEST(MarginRankingLoss, IsPyTorchs) {
  nn::MarginRankingLoss loss({.margin = 0.5, .reduction = "none"});
  const Tensor order =
      Tensor::From({1.0f, -1.0f, 1.0f, -1.0f, 1.0f, -1.0f, 1.0f, 1.0f, -1.0f, -1.0f, -1.0f, 1.0f}, {4, 3});
  EXPECT_THAT(loss(Rows(2), Rows(7), order).ToFloats(),
              Pointwise(FloatNear(kDistanceTolerance),
                        {1.125f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.125f, 0.0f, 0.0f, 1.5f, 0.0f, 1.125f}));
  ExpectGradient([&](const Tensor& b) { return loss(Rows(2), b, order); }, Rows(7));
  LossAndGradient at_margin(Tensor::From({0.5f, 0.25f}, {2}), [&](const Tensor& a, const Tensor& zeros) {
    return loss(a, zeros, Tensor::From({1.0f, 1.0f}, {2}));
  });
  EXPECT_THAT(at_margin(Tensor::Zeros({2})).second.ToFloats(), ::testing::ElementsAre(0, -1));
  const Tensor nan = Tensor::From({kNan}, {1}), one = Tensor::From({1.0f}, {1});
  EXPECT_THAT(loss(nan, one, one).ToFloats()[0], ::testing::IsNan());
  EXPECT_THAT(ErrorOf(loss(Rows(2), Rows(7), Values({3}))), HasSubstr("expects two floating tensors of one shape"));
  EXPECT_THAT(ErrorOf(nn::MarginRankingLoss({.margin = 1e39})(one, one, one)),
              HasSubstr("takes a margin that is finite in f32, got 1e+39"));
}

TEST(TripletMarginLoss, IsPyTorchs) {
  const struct {
    double p;
    bool swap;
    std::vector<float> expected;
  } cases[] = {{1, false, {1.25f, 2.125002f, 1.25f, 2.125002f}},
               {1, true, {2.499996f, 2.125002f, 2.499996f, 2.125002f}},
               {2, false, {0.9767867f, 1.685117f, 0.9767866f, 1.685117f}},
               {2, true, {1.90162f, 1.685117f, 1.90162f, 1.685117f}},
               {kInfinity, false, {0.75f, 1.625002f, 0.75f, 1.625002f}},
               {kInfinity, true, {1.75f, 1.625002f, 1.75f, 1.625002f}}};
  for (const auto& [p, swap, expected] : cases) {
    nn::TripletMarginLoss loss({.p = p, .swap = swap, .reduction = "none"});
    EXPECT_THAT(loss(Rows(2), Rows(7), Rows(5)).ToFloats(), Pointwise(FloatNear(kDistanceTolerance), expected))
        << p << " " << swap;
  }
  nn::TripletMarginLoss loss;
  ExpectGradient([&](const Tensor& anchor) { return loss(anchor, Rows(7), Rows(5)); }, Rows(2));
  // Equal rows: the distance's derivative at eps is finite.
  ExpectGradient([&](const Tensor& negative) { return loss(Rows(2), Rows(2), negative); }, Rows(5));
  EXPECT_THAT(ErrorOf(nn::TripletMarginLoss({.p = 3})(Rows(2), Rows(7), Rows(5))),
              HasSubstr("norm takes the order 1, 2 or infinity, got 3"));
  EXPECT_THAT(ErrorOf(nn::TripletMarginLoss({.margin = 0})(Rows(2), Rows(7), Rows(5))),
              HasSubstr("margin must be a finite number > 0, got 0"));
  EXPECT_THAT(ErrorOf(loss(Rows(2), Rows(7), Values({4, 2}))), HasSubstr("expects two floating tensors of one shape"));
}

/// Embeds anchors, positives and negatives, and gives the loss.
class Triplets : public nn::Cell {
 public:
  MPC_CELL(Triplets, embed, loss)
  Tensor Construct(const Tensor& anchor, const Tensor& positive, const Tensor& negative) {
    return loss(embed(anchor), embed(positive), embed(negative));
  }
  nn::Dense embed{3, 2};
  nn::TripletMarginLoss loss;
};

TEST(TripletMarginLoss, TrainsInLowPrecision) {
  SetSeed(4);
  Triplets net;
  nn::Momentum optimizer(net.TrainableParams(), {.learning_rate = 0.1, .momentum = 0.9});
  nn::TrainOneStepCell step(net, optimizer);
  Model model(step, {.amp_level = "O2"});
  History history;
  MPC_ASSERT_OK(model.Train(
      30, data::GeneratorDataset({{Rows(2), Rows(3), Rows(9)}}, {"anchor", "positive", "negative"}), {history}));
  const std::vector<double>& losses = history.of("loss");
  ASSERT_EQ(losses.size(), 30u);
  EXPECT_LT(losses.back(), losses.front() / 2);
}

}  // namespace
}  // namespace mpc
