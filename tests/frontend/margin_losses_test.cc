// Losses of margins. Expected numbers are those of PyTorch 2.15 in f64.
#include "frontend/nn/margin_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/frontend/eighths.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/loss_and_gradient.h"
#include "tests/frontend/numeric_gradient.h"
#include "tests/training/training_support.h"

namespace mpc {
namespace {

using testing::Eighths;
using ::testing::ElementsAre;
using testing::ErrorOf;
using testing::ExpectGradient;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsNan;
using testing::kInfinity;
using testing::kNan;
using testing::LossAndGradient;
using ::testing::Pointwise;
using testing::Values;

// Fewer than 16 roundings of numbers below 4.
constexpr float kMarginTolerance = 0x1p-18f;

/// Labels 1 and -1, with `other` for one of them.
Tensor SignLabels(float other) {
  return Tensor::From({1.0f, -1.0f, -1.0f, 1.0f, -1.0f, 1.0f, 1.0f, -1.0f, other, -1.0f, 1.0f, -1.0f}, {4, 3});
}

TEST(HingeEmbeddingLoss, IsPyTorchs) {
  nn::HingeEmbeddingLoss loss({.margin = 0.5, .reduction = "none"});
  const std::vector<float> expected = {-0.5f, 0.375f, 0, -0.25f, 0.125f, -0.625f, 0, 0, 0.5f, 0.25f, -0.75f, 0.625f};
  EXPECT_EQ(loss(Eighths(2), SignLabels(0)).ToFloats(), expected);
  EXPECT_EQ(loss(Eighths(2).To(DType::kF16), SignLabels(0).To(DType::kI32)).ToFloats(), expected);
  EXPECT_NEAR(nn::HingeEmbeddingLoss()(Eighths(2), SignLabels(0)).Item<float>(), 0.239583333f, kMarginTolerance);
  EXPECT_EQ(nn::HingeEmbeddingLoss({.reduction = "sum"})(Eighths(2), SignLabels(0)).Item<float>(), 2.875f);
  const Tensor x = Tensor::From({kNan, kNan, kInfinity, kInfinity, -kInfinity}, {5});
  EXPECT_THAT(loss(x, Tensor::From<std::int32_t>({1, -1, 1, -1, -1}, {5})).ToFloats(),
              ElementsAre(IsNan(), IsNan(), kInfinity, 0, kInfinity));
  LossAndGradient at_margin(Tensor::From({0.5f, 0.25f}, {2}),
                            [&](const Tensor& x, const Tensor& t) { return loss(x, t); });
  EXPECT_THAT(at_margin(Tensor::From<std::int32_t>({-1, -1}, {2})).second.ToFloats(), ElementsAre(0, -1));
  nn::HingeEmbeddingLoss between({.margin = 0.5625});
  ExpectGradient([&](const Tensor& x) { return between(x, SignLabels(0)); }, Eighths(2));
}

TEST(HingeEmbeddingLoss, RefusesByName) {
  nn::HingeEmbeddingLoss loss;
  EXPECT_THAT(ErrorOf(loss(Eighths(2), Values({3}))),
              HasSubstr("HingeEmbeddingLoss expects a floating x and labels 1 and -1 of its shape, got "
                        "tensor<4x3xf32> and tensor<3xf32>"));
  EXPECT_THAT(ErrorOf(nn::HingeEmbeddingLoss({.margin = kNan})(Eighths(2), SignLabels(1))),
              HasSubstr("takes a margin that is finite in f32, got nan"));
  EXPECT_THAT(ErrorOf(nn::HingeEmbeddingLoss({.reduction = "all"})(Eighths(2), SignLabels(1))),
              HasSubstr("does not know the reduction 'all'"));
}

TEST(SoftMarginLoss, IsPyTorchsAndDoesNotOverflow) {
  nn::SoftMarginLoss loss({.reduction = "none"});
  const Tensor x = Eighths(2) * 4.0;
  EXPECT_THAT(loss(x, SignLabels(1)).ToFloats(),
              Pointwise(FloatNear(kMarginTolerance),
                        {2.12692801f, 0.974076984f, 3.04858735f, 1.31326169f, 1.70141328f, 2.57888973f, 0.693147181f,
                         2.57888973f, 1.70141328f, 1.31326169f, 3.04858735f, 0.474076984f}));
  EXPECT_NEAR(nn::SoftMarginLoss()(x.To(DType::kBF16), SignLabels(1)).Item<float>(), 1.79604444f, kMarginTolerance);
  // PyTorch gives infinity for -1000.
  EXPECT_THAT(
      loss(Tensor::From({1000.0f, -1000.0f, kInfinity, -kInfinity, kNan}, {5}), Tensor::Full({5}, 1.0)).ToFloats(),
      ElementsAre(0, 1000, 0, kInfinity, IsNan()));
  ExpectGradient([&](const Tensor& x) { return loss(x, SignLabels(1)); }, x);
  EXPECT_THAT(ErrorOf(loss(x, Values({3}))), HasSubstr("SoftMarginLoss expects two floating tensors of one shape"));
}

TEST(MultiLabelSoftMarginLoss, IsPyTorchs) {
  const Tensor x = Eighths(2) * 4.0;
  const Tensor weight = Tensor::From({0.5f, 2.0f, 1.0f}, {3});
  const Tensor labels =
      where(greater(Eighths(7), Tensor::Scalar(0.0f)), Tensor::Full({4, 3}, 1.0), Tensor::Zeros({4, 3}));
  nn::MultiLabelSoftMarginLoss plain({.reduction = "none"}), weighed({.weight = weight, .reduction = "none"});
  EXPECT_THAT(plain(x, labels).ToFloats(),
              Pointwise(FloatNear(kMarginTolerance), {1.88319745f, 1.03118823f, 1.65781673f, 0.778642008f}));
  EXPECT_THAT(weighed(x, labels).ToFloats(),
              Pointwise(FloatNear(kMarginTolerance), {1.68673511f, 1.37944904f, 2.40192211f, 0.575960844f}));
  nn::MultiLabelSoftMarginLoss mean({.weight = weight});
  EXPECT_NEAR(mean(x.To(DType::kF16), labels).Item<float>(), 1.51101678f, kMarginTolerance);
  ExpectGradient([&](const Tensor& x) { return weighed(x, labels); }, x);
  EXPECT_THAT(ErrorOf(nn::MultiLabelSoftMarginLoss({.weight = Values({4})})(x, labels)),
              HasSubstr("expects a concrete floating weight [3], one for each class, got tensor<4xf32>"));
  EXPECT_THAT(ErrorOf(plain(Values({3}), Values({3}))), HasSubstr("expects rows [N, D], got tensor<3xf32>"));
}

TEST(MultiMarginLoss, IsPyTorchs) {
  const Tensor labels = Tensor::From<std::int32_t>({0, 2, 1, 2}, {4});
  const Tensor weight = Tensor::From({0.5f, 2.0f, 1.0f}, {3});
  const struct {
    int p;
    Tensor weight;
    std::vector<float> expected;
  } cases[] = {{1, {}, {1.125f, 0.958333333f, 0.0416666667f, 0.416666667f}},
               {1, weight, {0.5625f, 0.958333333f, 0.0833333333f, 0.416666667f}},
               {2, {}, {1.96354167f, 1.44270833f, 0.00520833333f, 0.427083333f}},
               {2, weight, {0.981770833f, 1.44270833f, 0.0104166667f, 0.427083333f}}};
  for (const auto& [p, weight, expected] : cases) {
    nn::MultiMarginLoss loss({.p = p, .margin = 0.75, .reduction = "none", .weight = weight});
    EXPECT_THAT(loss(Eighths(2), labels).ToFloats(), Pointwise(FloatNear(kMarginTolerance), expected)) << p;
    EXPECT_THAT(loss(Eighths(2).To(DType::kF16), labels).ToFloats(), Pointwise(FloatNear(kMarginTolerance), expected));
  }
  EXPECT_NEAR(nn::MultiMarginLoss()(Eighths(2), labels).Item<float>(), 0.78125f, kMarginTolerance);
  EXPECT_NEAR(nn::MultiMarginLoss({.weight = weight})(Eighths(2), labels).Item<float>(), 0.651041667f,
              kMarginTolerance);
  for (int p : {1, 2}) {
    nn::MultiMarginLoss loss({.p = p, .margin = 0.8125, .weight = weight});
    ExpectGradient([&](const Tensor& x) { return loss(x, labels); }, Eighths(2));
  }
}

TEST(MultiMarginLoss, HasNoGradientAtItsMargin) {
  const Tensor labels = Tensor::From<std::int32_t>({0, 1}, {2});
  LossAndGradient step(
      Tensor::From({1.0f, 0.0f, 0.5f, 0.0f, 0.0f, 0.0f}, {2, 3}),
      [](const Tensor& x, const Tensor& labels) { return nn::MultiMarginLoss({.reduction = "sum"})(x, labels); });
  const float third = 1.0f / 3;
  EXPECT_THAT(step(labels).second.ToFloats(),
              Pointwise(FloatNear(kMarginTolerance), {-third, 0.0f, third, third, -2 * third, third}));
}

// PyTorch gives 0 where the label's score is NaN.
TEST(MultiMarginLoss, OfNanInfinityAndAWrongLabel) {
  nn::MultiMarginLoss loss({.reduction = "none"});
  const Tensor x =
      Tensor::From({kNan, 0.0f, 0.0f, kInfinity, 0.0f, 0.0f, 0.0f, kInfinity, 0.0f, 0.0f, -kInfinity, 0.0f}, {4, 3});
  EXPECT_THAT(loss(x, Tensor::Zeros({4}, DType::kI32)).ToFloats(),
              ElementsAre(IsNan(), 0, kInfinity, FloatNear(1.0f / 3, kMarginTolerance)));
  EXPECT_THAT(loss(Eighths(2), Tensor::From<std::int32_t>({0, 3, -1, 1}, {4})).ToFloats(),
              ElementsAre(::testing::Not(IsNan()), IsNan(), IsNan(), ::testing::Not(IsNan())));
}

TEST(MultiMarginLoss, RefusesByName) {
  const Tensor labels = Tensor::From<std::int32_t>({0, 2, 1, 2}, {4});
  EXPECT_THAT(ErrorOf(nn::MultiMarginLoss({.p = 3})(Eighths(2), labels)),
              HasSubstr("MultiMarginLoss takes a power p of 1 or 2, got 3"));
  EXPECT_THAT(ErrorOf(nn::MultiMarginLoss({.margin = 1e39})(Eighths(2), labels)),
              HasSubstr("takes a margin that is finite in f32, got 1e+39"));
  EXPECT_THAT(ErrorOf(nn::MultiMarginLoss()(Values({4, 3, 2}), labels)),
              HasSubstr("expects floating scores [N, C], got tensor<4x3x2xf32>"));
  EXPECT_THAT(ErrorOf(nn::MultiMarginLoss()(Eighths(2), Values({4}))),
              HasSubstr("expects integer class labels [4], got labels tensor<4xf32>"));
  EXPECT_THAT(ErrorOf(nn::MultiMarginLoss({.weight = Values({2})})(Eighths(2), labels)),
              HasSubstr("expects a concrete floating weight [3]"));
}

/// Scores of rows, and their loss.
class Ranked : public nn::Cell {
 public:
  MPC_CELL(Ranked, dense, loss)
  Tensor Construct(const Tensor& x, const Tensor& labels) { return loss(dense(x), labels); }
  nn::Dense dense{3, 3};
  nn::MultiMarginLoss loss;
};

TEST(MultiMarginLoss, TrainsInLowPrecisionAndNamesAWrongLabel) {
  SetSeed(4);
  Ranked net;
  nn::Momentum optimizer(net.TrainableParams(), {.learning_rate = 0.5, .momentum = 0.9});
  nn::TrainOneStepCell step(net, optimizer);
  Model model(step, {.amp_level = "O2"});
  History history;
  const auto rows = [](std::int32_t last) {
    return data::GeneratorDataset({{Eighths(2), Tensor::From<std::int32_t>({0, 1, 2, last}, {4})}}, {"x", "label"});
  };
  MPC_ASSERT_OK(model.Train(40, rows(2), {history}));
  const std::vector<double>& losses = history.of("loss");
  ASSERT_EQ(losses.size(), 40u);
  EXPECT_LT(losses.back(), losses.front() / 2);
  EXPECT_THAT(ErrorOf(model.Train(1, rows(3))), HasSubstr("label 3"));
}

}  // namespace
}  // namespace mpc
