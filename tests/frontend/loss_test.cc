// Losses: values and gradients against formulas in f64 on drawn data, ignored labels, weights, reductions, errors.
#include "frontend/nn/loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "frontend/graph/gradient_ops.h"
#include "tests/frontend/error_of.h"
#include "tests/frontend/loss_and_gradient.h"
#include "tests/training/probe.h"

namespace mpc {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsNan;
using testing::kInfinity;
using testing::LossAndGradient;
using ::testing::Pointwise;
using testing::Values;

using Numbers = std::vector<double>;
/// A loss in f64, as a function of the network's output.
using Formula = std::function<Numbers(const Numbers&)>;
using Function = testing::LossFunction;

Numbers ToNumbers(const Tensor& tensor) {
  const std::vector<float> values = tensor.ToFloats();
  return {values.begin(), values.end()};
}

double Sum(const Numbers& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// A bound on the error of f32 where `terms` numbers are added whose sum of magnitudes is `magnitude`. Each addition
/// rounds by 2^-24 of it. What makes a term (exp, log, quotients, products) rounds fewer than 32 times.
double Bound(std::size_t terms, double magnitude) {
  return static_cast<double>(terms + 32) * std::ldexp(magnitude, -24);
}

/// Compares `loss` and its gradient with the formula. Central differences with a step of h have an error of h^2 / 6
/// times the third derivative, and of 2^-52 / h: both are below 2^-30 of `magnitude`.
void ExpectFormula(const Function& loss, const Tensor& x, const Tensor& labels, const Formula& formula,
                   double magnitude) {
  LossAndGradient step(x, loss);
  const auto [value, gradient] = step(labels);
  ASSERT_TRUE(value.status().ok()) << value.status();
  const double bound = Bound(static_cast<std::size_t>(x.size()), magnitude);
  EXPECT_EQ(value.dtype(), DType::kF32);
  EXPECT_THAT(ToNumbers(value), Pointwise(::testing::DoubleNear(bound), formula(ToNumbers(x))));
  const double h = std::ldexp(1.0, -17);
  Numbers expected;
  for (std::size_t i = 0; i < static_cast<std::size_t>(x.size()); ++i) {
    Numbers above = ToNumbers(x), below = above;
    above[i] += h;
    below[i] -= h;
    expected.push_back((Sum(formula(above)) - Sum(formula(below))) / (2 * h));
  }
  EXPECT_THAT(ToNumbers(gradient), Pointwise(::testing::DoubleNear(bound + std::ldexp(magnitude, -30)), expected));
}

Numbers Reduced(const Numbers& losses, const std::string& reduction, double divisor) {
  if (reduction == "none") return losses;
  return {reduction == "sum" ? Sum(losses) : Sum(losses) / divisor};
}

/// Log-probabilities of logits [N, C, inner] in f64; `at(n, c, i)` indexes them.
struct LogSoftmax {
  LogSoftmax(const Numbers& x, std::size_t samples, std::size_t classes, std::size_t inner)
      : values(x), classes(classes), inner(inner) {
    for (std::size_t n = 0; n < samples; ++n) {
      for (std::size_t i = 0; i < inner; ++i) {
        double sum = 0;
        for (std::size_t c = 0; c < classes; ++c) sum += std::exp(at(n, c, i));
        for (std::size_t c = 0; c < classes; ++c) at(n, c, i) -= std::log(sum);
      }
    }
  }
  double& at(std::size_t n, std::size_t c, std::size_t i) { return values[(n * classes + c) * inner + i]; }

  Numbers values;
  std::size_t classes, inner;
};

const std::vector<std::string> kReductions = {"none", "mean", "sum"};

// Images [3, 4, 2, 2]: 12 positions, two of which are ignored.
const Shape kImages = {3, 4, 2, 2};
const std::vector<std::int32_t> kLabels = {0, 3, -7, 1, 2, 2, 0, -7, 3, 1, 1, 0};
const std::vector<float> kWeights = {0.5f, 1.0f, 2.0f, 0.25f};

Formula CrossEntropy(bool weighted, double smoothing, const std::string& reduction) {
  return [=](const Numbers& x) {
    LogSoftmax log_p(x, 3, 4, 4);
    Numbers losses;
    double divisor = 0;
    for (std::size_t position = 0; position < 12; ++position) {
      double& loss = losses.emplace_back(0);
      if (kLabels[position] < 0) continue;
      for (std::size_t c = 0; c < 4; ++c) {
        const double weight = weighted ? kWeights[c] : 1;
        const bool is_label = static_cast<std::int32_t>(c) == kLabels[position];
        const double target = (is_label ? 1 - smoothing : 0) + smoothing / 4;
        loss -= weight * target * log_p.at(position / 4, c, position % 4);
        if (is_label) divisor += weight;
      }
    }
    return Reduced(losses, reduction, divisor);
  };
}

TEST(CrossEntropyLoss, IsItsFormulaWithWeightsSmoothingAndIgnoredLabels) {
  const Tensor x = Values(kImages, 1, 4.0f);
  const Tensor labels = Tensor::From(kLabels, {3, 2, 2});
  for (const std::string& reduction : kReductions) {
    for (bool weighted : {false, true}) {
      for (double smoothing : {0.0, 0.25}) {
        SCOPED_TRACE(::testing::Message() << reduction << " weighted " << weighted << " smoothing " << smoothing);
        nn::CrossEntropyLoss loss({.weight = weighted ? Tensor::From(kWeights, {4}) : Tensor(),
                                   .ignore_index = -7,
                                   .reduction = reduction,
                                   .label_smoothing = smoothing});
        // A loss is below 8 + log 4, and a weight at most 2. The labels' weights sum to 9, and without weights to 10.
        const double magnitude = reduction == "sum" ? 12 * 2 * 10 : 12 * 2 * 10 / 9.0;
        ExpectFormula([&](const Tensor& a, const Tensor& b) { return loss(a, b); }, x, labels,
                      CrossEntropy(weighted, smoothing, reduction), magnitude);
      }
    }
  }
}

TEST(CrossEntropyLoss, TakesProbabilitiesAndDividesByPositions) {
  const Tensor x = Values({3, 4, 4}, 2, 4.0f);
  const Tensor labels = abs(Values({3, 4, 4}, 3));
  for (const std::string& reduction : kReductions) {
    nn::CrossEntropyLoss loss({.weight = Tensor::From(kWeights, {4}), .reduction = reduction, .label_smoothing = 0.25});
    const Formula formula = [&](const Numbers& values) {
      LogSoftmax log_p(values, 3, 4, 4);
      const Numbers given = ToNumbers(labels);
      Numbers losses(12);
      for (std::size_t i = 0; i < 48; ++i) {
        const std::size_t c = i / 4 % 4;
        losses[i / 16 * 4 + i % 4] -= kWeights[c] * (given[i] * 0.75 + 0.25 / 4) * log_p.values[i];
      }
      return Reduced(losses, reduction, 12);
    };
    // The mass of a label is at most 4.
    ExpectFormula([&](const Tensor& a, const Tensor& b) { return loss(a, b); }, x, labels, formula, 12 * 2 * 4 * 10);
  }
}

TEST(CrossEntropyLoss, DefaultsAreMindSpores) {
  nn::CrossEntropyLoss loss;
  const Tensor labels = Tensor::From<std::int64_t>({1, -100}, {2});
  EXPECT_NEAR(loss(Tensor::Zeros({2, 3}), labels).Item<float>(), std::log(3.0), Bound(3, std::log(3.0)));
}

TEST(CrossEntropyLoss, AnIgnoredNumberBeyondTheLabelsTypeLeavesNothingOut) {
  constexpr std::int64_t kWrap = std::int64_t{1} << 32;
  const Tensor x = Tensor::From<float>({0, 0, 0, -kInfinity, 0, 0}, {2, 3});
  const std::vector<std::int64_t> beyond = {std::numeric_limits<std::int64_t>::min(),
                                            std::numeric_limits<std::int64_t>::max(),
                                            -kWrap,
                                            kWrap / 2,
                                            kWrap,
                                            kWrap + 1,
                                            (std::int64_t{1} << 53) + 1};
  for (const std::int64_t ignored : beyond) {
    const auto losses = [&](const std::vector<std::int64_t>& labels, DType dtype) {
      const Tensor given = Tensor::From(labels, {2}).To(dtype);
      return std::vector{nn::CrossEntropyLoss({.ignore_index = ignored, .reduction = "none"})(x, given).ToFloats(),
                         nn::NLLLoss({.ignore_index = ignored, .reduction = "none"})(x, given).ToFloats()};
    };
    for (const DType dtype : {DType::kI32, DType::kI64}) {
      const auto of_classes = losses({0, 1}, dtype);
      EXPECT_NEAR(of_classes[0][0], std::log(3.0), Bound(3, std::log(3.0))) << ignored;
      EXPECT_NEAR(of_classes[0][1], std::log(2.0), Bound(3, std::log(2.0))) << ignored;
      EXPECT_THAT(of_classes[1], ElementsAre(0, 0)) << ignored;
      EXPECT_EQ(losses({0, 0}, dtype)[1][1], kInfinity) << ignored;
    }
    // i64 has the number, and the one beside it is not left out.
    const std::int64_t beside = ignored < 0 ? ignored + 1 : ignored - 1;
    for (const std::vector<float>& of : losses({ignored, beside}, DType::kI64)) {
      EXPECT_EQ(of[0], 0) << ignored;
      EXPECT_TRUE(std::isnan(of[1])) << ignored;
    }
  }
}

class GradientOfCrossEntropy : public nn::Cell {
 public:
  MPC_CELL(GradientOfCrossEntropy, loss)
  Tensor Construct(Tensor x, Tensor labels) { return ops::Grad(loss(x, labels), {x})[0]; }
  nn::CrossEntropyLoss loss;
};

TEST(CrossEntropyLoss, IgnoredPositionsHaveNoGradientUnlessALogitIsNanOrInfinite) {
  const float nan = std::nanf("");
  const Tensor x = Tensor::From<float>({1, 2, 3, 4, nan, 0, kInfinity, 0, -kInfinity, 0}, {5, 2});
  const Tensor labels = Tensor::From<std::int32_t>({1, -100, -100, -100, -100}, {5});
  GradientOfCrossEntropy gradient;
  const std::vector<float> rows = gradient(x, labels).ToFloats();
  EXPECT_GT(rows[0], 0);
  EXPECT_LT(rows[1], 0);
  EXPECT_THAT(std::vector<float>(rows.begin() + 2, rows.begin() + 4), ElementsAre(0, 0));
  EXPECT_THAT(std::vector<float>(rows.begin() + 4, rows.begin() + 8), Each(IsNan()));
  EXPECT_THAT(std::vector<float>(rows.begin() + 8, rows.end()), ElementsAre(0, 0));
}

TEST(CrossEntropyLoss, TheMeanOfNothingIsNan) {
  const Tensor labels = Tensor::From<std::int32_t>({-100, -100}, {2});
  EXPECT_TRUE(std::isnan(nn::CrossEntropyLoss()(Tensor::Zeros({2, 3}), labels).Item<float>()));
  EXPECT_EQ(nn::CrossEntropyLoss({.reduction = "sum"})(Tensor::Zeros({2, 3}), labels).Item<float>(), 0);
}

TEST(CrossEntropyLoss, ALabelOutOfRangeIsAnErrorWithItsRow) {
  const Tensor labels = Tensor::From<std::int32_t>({-100, 3}, {2});
  const Tensor logits = Tensor::Zeros({2, 3});
  EXPECT_THAT(ErrorOf(nn::CrossEntropyLoss()(logits, labels)), HasSubstr("label 3 in row 1 is out of range"));
  EXPECT_THAT(ErrorOf(nn::NLLLoss()(logits, labels)), HasSubstr("label 3 in row 1 is out of range"));
  EXPECT_THAT(ErrorOf(nn::FocalLoss()(logits, labels)), HasSubstr("label -100 in row 0 is out of range"));
  const std::vector<float> losses = nn::CrossEntropyLoss({.reduction = "none"})(logits, labels).ToFloats();
  EXPECT_EQ(losses[0], 0);
  EXPECT_TRUE(std::isnan(losses[1]));
  EXPECT_TRUE(std::isnan(nn::NLLLoss({.reduction = "none"})(logits, labels).ToFloats()[1]));
}

TEST(CrossEntropyLoss, ErrorsNameTheCellAndSpecs) {
  const Tensor logits = Tensor::Zeros({2, 3});
  const Tensor labels = Tensor::Zeros({2}, DType::kI32);
  EXPECT_THAT(ErrorOf(nn::CrossEntropyLoss()(logits, Tensor::Zeros({3}, DType::kI32))),
              HasSubstr("CrossEntropyLoss expects integer class labels [2] or floating labels like the logits, got "
                        "labels tensor<3xi32> for logits tensor<2x3xf32>"));
  EXPECT_THAT(
      ErrorOf(nn::CrossEntropyLoss()(Tensor::Zeros({2, 4, 3}), Tensor::Zeros({2, 4}, DType::kI32))),
      HasSubstr("classes are on axis 1, and here they seem to be on the last one: transpose(logits, {0, 2, 1})"));
  EXPECT_THAT(ErrorOf(nn::CrossEntropyLoss()(Tensor::Zeros({3}), labels)),
              HasSubstr("CrossEntropyLoss expects floating logits [N, C, ...], got tensor<3xf32>"));
  EXPECT_THAT(ErrorOf(nn::CrossEntropyLoss({.weight = Tensor::Zeros({2})})(logits, labels)),
              HasSubstr("expects a concrete floating weight [3], one for each class, got tensor<2xf32>"));
  EXPECT_THAT(ErrorOf(nn::CrossEntropyLoss({.reduction = "average"})(logits, labels)),
              HasSubstr("CrossEntropyLoss does not know the reduction 'average'; known are none, mean, sum"));
  EXPECT_THAT(ErrorOf(nn::CrossEntropyLoss({.label_smoothing = 1.5})(logits, labels)),
              HasSubstr("takes a label_smoothing in [0, 1], got 1.5"));
  EXPECT_THAT(ErrorOf(nn::NLLLoss()(logits, logits)), HasSubstr("NLLLoss expects integer class labels [2], got"));
  EXPECT_THAT(ErrorOf(nn::FocalLoss({.gamma = -1})(logits, labels)),
              HasSubstr("FocalLoss gamma must be a finite number >= 0, got -1"));
}

TEST(NLLLoss, PicksTheLabelsLogProbability) {
  const Tensor x = Values(kImages, 4, 4.0f);
  const Tensor labels = Tensor::From(kLabels, {3, 2, 2});
  for (const std::string& reduction : kReductions) {
    nn::NLLLoss loss({.weight = Tensor::From(kWeights, {4}), .ignore_index = -7, .reduction = reduction});
    const Formula formula = [&](const Numbers& values) {
      Numbers losses(12);
      double divisor = 0;
      for (std::size_t position = 0; position < 12; ++position) {
        if (kLabels[position] < 0) continue;
        const auto label = static_cast<std::size_t>(kLabels[position]);
        losses[position] = -kWeights[label] * values[(position / 4 * 4 + label) * 4 + position % 4];
        divisor += kWeights[label];
      }
      return Reduced(losses, reduction, divisor);
    };
    ExpectFormula([&](const Tensor& a, const Tensor& b) { return loss(a, b); }, x, labels, formula, 12 * 2 * 4);
  }
}

TEST(NLLLoss, ImpossibleClassesThatAreNoLabelDoNotMatter) {
  const Tensor x = Tensor::From<float>({0, -kInfinity}, {1, 2});
  EXPECT_EQ(nn::NLLLoss()(x, Tensor::From<std::int32_t>({0}, {1})).Item<float>(), 0);
  EXPECT_EQ(nn::NLLLoss()(x, Tensor::From<std::int32_t>({1}, {1})).Item<float>(), kInfinity);
}

TEST(FocalLoss, IsItsFormulaAndTheMeanOverPositions) {
  const Tensor x = Values({3, 4, 4}, 5, 3.0f);
  std::vector<std::int32_t> labels(12);
  for (std::size_t i = 0; i < 12; ++i) labels[i] = static_cast<std::int32_t>(i * 7 % 4);
  for (const std::string& reduction : kReductions) {
    for (double gamma : {0.0, 0.5, 2.0}) {
      SCOPED_TRACE(::testing::Message() << reduction << " gamma " << gamma);
      nn::FocalLoss loss({.weight = Tensor::From(kWeights, {4}), .gamma = gamma, .reduction = reduction});
      const Formula formula = [&](const Numbers& values) {
        LogSoftmax log_p(values, 3, 4, 4);
        Numbers losses(3);
        for (std::size_t position = 0; position < 12; ++position) {
          const auto label = static_cast<std::size_t>(labels[position]);
          const double value = log_p.at(position / 4, label, position % 4);
          losses[position / 4] -= kWeights[label] * std::pow(1 - std::exp(value), gamma) * value / 4;
        }
        return Reduced(losses, reduction, 3);
      };
      // 1 - p is above 2^-9, so that a root of it has a relative error below 2^9 times that of p, and a derivative
      // that is as much larger.
      const double magnitude = 2 * 10 * (gamma == 0.5 ? 512 : 1);
      const auto function = [&](const Tensor& a, const Tensor& b) { return loss(a, b); };
      ExpectFormula(function, x, Tensor::From(labels, {3, 4}), formula, magnitude);
      ExpectFormula(function, x, Tensor::From(labels, {3, 1, 4}), formula, magnitude);
    }
  }
}

TEST(FocalLoss, OneHotLabelsGiveALossForEachClass) {
  const Tensor x = Values({2, 3}, 6, 2.0f);
  const Tensor sparse = Tensor::From<std::int32_t>({2, 0}, {2});
  const Tensor dense = Tensor::From<float>({0, 0, 1, 1, 0, 0}, {2, 3});
  const std::vector<float> of_rows = nn::FocalLoss({.reduction = "none"})(x, sparse).ToFloats();
  const std::vector<float> of_classes = nn::FocalLoss({.reduction = "none"})(x, dense).ToFloats();
  EXPECT_THAT(of_classes,
              Pointwise(FloatNear(static_cast<float>(Bound(3, 4))), {0.0f, 0.0f, of_rows[0], of_rows[1], 0.0f, 0.0f}));
  EXPECT_NEAR(nn::FocalLoss()(x, dense).Item<float>(), (of_rows[0] + of_rows[1]) / 6, Bound(6, 4));
}

TEST(FocalLoss, ACertainClassHasAFiniteGradient) {
  nn::FocalLoss loss({.gamma = 0.5});
  LossAndGradient step(Tensor::From<float>({100, 0}, {1, 2}),
                       [&](const Tensor& x, const Tensor& labels) { return loss(x, labels); });
  const auto [value, gradient] = step(Tensor::From<std::int32_t>({0}, {1}));
  EXPECT_EQ(value.Item<float>(), 0);
  EXPECT_THAT(gradient.ToFloats(), Each(0));
}

/// A loss that is a function of each difference, with its formula.
void ExpectElementwise(const Function& loss, const std::string& reduction,
                       const std::function<double(double x, double target)>& formula) {
  const Tensor x = Values({3, 5}, 7, 2.0f);
  const Tensor target = abs(Values({3, 5}, 8));
  const Numbers expected = ToNumbers(target);
  ExpectFormula(
      loss, x, target,
      [&](const Numbers& values) {
        Numbers losses;
        for (std::size_t i = 0; i < values.size(); ++i) losses.push_back(formula(values[i], expected[i]));
        return Reduced(losses, reduction, reduction == "batchmean" ? 3 : 15);
      },
      15 * 16);
}

TEST(L1Loss, IsTheDistance) {
  for (const std::string& reduction : kReductions) {
    nn::L1Loss loss({.reduction = reduction});
    ExpectElementwise([&](const Tensor& a, const Tensor& b) { return loss(a, b); }, reduction,
                      [](double x, double target) { return std::abs(x - target); });
  }
}

TEST(HuberLoss, IsASquareNearZeroAndALineBeyond) {
  for (const std::string& reduction : kReductions) {
    nn::HuberLoss huber({.reduction = reduction, .delta = 0.75});
    ExpectElementwise([&](const Tensor& a, const Tensor& b) { return huber(a, b); }, reduction,
                      [](double x, double target) {
                        const double d = std::abs(x - target);
                        return d < 0.75 ? d * d / 2 : 0.75 * (d - 0.375);
                      });
    nn::SmoothL1Loss smooth({.beta = 0.75, .reduction = reduction});
    ExpectElementwise([&](const Tensor& a, const Tensor& b) { return smooth(a, b); }, reduction,
                      [](double x, double target) {
                        const double d = std::abs(x - target);
                        return d < 0.75 ? d * d / 1.5 : d - 0.375;
                      });
  }
}

TEST(KLDivLoss, IsTheDivergenceOfTheTarget) {
  for (const char* reduction : {"none", "mean", "sum", "batchmean"}) {
    nn::KLDivLoss loss({.reduction = reduction});
    ExpectElementwise([&](const Tensor& a, const Tensor& b) { return loss(a, b); }, reduction,
                      [](double x, double target) { return target * (std::log(target) - x); });
  }
  const Tensor target = Tensor::From<float>({0, 1}, {1, 2});
  EXPECT_THAT(nn::KLDivLoss({.reduction = "none"})(Tensor::From<float>({-kInfinity, 0}, {1, 2}), target).ToFloats(),
              ElementsAre(0, 0));
}

TEST(DiceLoss, IsOneMinusTheOverlap) {
  const Tensor x = Values({3, 5}, 9);
  const Tensor target = abs(Values({3, 5}, 10));
  const Numbers t = ToNumbers(target);
  nn::DiceLoss loss({.smooth = 0.5});
  const auto formula = [&](const Numbers& p) {
    double both = 0, squares = 0.5;
    for (std::size_t i = 0; i < p.size(); ++i) {
      both += p[i] * t[i];
      squares += p[i] * p[i] + t[i] * t[i];
    }
    return Numbers{1 - 2 * both / squares};
  };
  // The sums are below 30, and the divisor above 1/2.
  ExpectFormula([&](const Tensor& a, const Tensor& b) { return loss(a, b); }, x, target, formula, 2 * 30);
}

TEST(RegressionLosses, DefaultsAreMindSpores) {
  const Tensor x = Tensor::From<float>({1, 2}, {2});
  const Tensor zero = Tensor::Zeros({2});
  EXPECT_EQ(nn::L1Loss()(x, zero).Item<float>(), 1.5);
  EXPECT_EQ(nn::HuberLoss()(x, zero).Item<float>(), 1);
  EXPECT_THAT(nn::SmoothL1Loss()(x, zero).ToFloats(), ElementsAre(0.5, 1.5));
  EXPECT_EQ(nn::KLDivLoss()(x, zero).Item<float>(), 0);
  EXPECT_EQ(nn::DiceLoss()(x, zero).Item<float>(), 1);
}

TEST(RegressionLosses, LowInputsAreComputedInF32) {
  // 1 + 2^-11 lies between the neighbours of f16, as the difference of two f16 numbers does.
  const Tensor x = Tensor::From<float>({1}, {1}).To(DType::kF16);
  const Tensor target = Tensor::From<float>({-std::ldexp(1.0f, -11)}, {1}).To(DType::kF16);
  const Tensor loss = nn::L1Loss()(x, target);
  EXPECT_EQ(loss.dtype(), DType::kF32);
  EXPECT_EQ(loss.Item<float>(), 1 + std::ldexp(1.0f, -11));
}

/// The loss of the first step of a network whose outputs are `x`, at `level`.
template <typename Loss>
double FirstLoss(const testing::Level& level, Loss loss, const Tensor& x, const Tensor& labels) {
  testing::Probe network(x.dim(1), 1.0);
  nn::SGD optimizer(network.TrainableParams());
  Model model(network, loss, optimizer,
              {.amp_level = level.level, .loss_scale_manager = nullptr, .amp_dtype = level.dtype});
  testing::LossRecorder recorder;
  MPC_EXPECT_OK(model.Train(1, testing::Batches({{x, labels}}), {recorder}));
  return recorder.losses.empty() ? NAN : recorder.losses[0];
}

// The outputs are exact in f16 and bf16. In low precision the losses would be off by 2^-9 of themselves.
TEST(Losses, AreF32AtEveryLevel) {
  const Tensor zeros = Tensor::Zeros({1, 3});
  const Tensor index = Tensor::From<std::int32_t>({1}, {1});
  const Tensor ones = Tensor::Full({1, 3}, 1);
  const Tensor near_ones = Tensor::Full({1, 3}, 1 + 0x1p-20);
  for (const testing::Level& level : testing::AllLevels()) {
    SCOPED_TRACE(level.level);
    const double bound = Bound(3, 2);
    EXPECT_NEAR(FirstLoss(level, nn::CrossEntropyLoss({.label_smoothing = 0.1}), zeros, index), std::log(3.0), bound);
    EXPECT_NEAR(FirstLoss(level, nn::FocalLoss(), zeros, index), std::log(3.0) * 4 / 9, bound);
    EXPECT_EQ(FirstLoss(level, nn::NLLLoss(), ones, index), -1);
    EXPECT_NEAR(FirstLoss(level, nn::L1Loss(), ones, near_ones), 0x1p-20, Bound(3, 0x1p-20));
    EXPECT_NEAR(FirstLoss(level, nn::HuberLoss(), ones, near_ones), 0x1p-41, Bound(3, 0x1p-41));
    EXPECT_NEAR(FirstLoss(level, nn::KLDivLoss(), zeros, ones * 3.0), 3 * std::log(3.0), Bound(3, 4));
    EXPECT_NEAR(FirstLoss(level, nn::DiceLoss(), ones, ones * 3.0), 0.4, Bound(3, 2));
  }
}

TEST(RegressionLosses, ErrorsNameTheCellAndSpecs) {
  const Tensor x = Tensor::Zeros({2});
  EXPECT_THAT(ErrorOf(nn::L1Loss()(x, Tensor::Zeros({2, 1}))),
              HasSubstr("L1Loss expects two floating tensors of one shape, got tensor<2xf32> and tensor<2x1xf32>"));
  EXPECT_THAT(ErrorOf(nn::HuberLoss({.delta = 0})(x, x)),
              HasSubstr("HuberLoss delta must be a finite number > 0, got 0"));
  EXPECT_THAT(ErrorOf(nn::SmoothL1Loss({.beta = -1})(x, x)),
              HasSubstr("SmoothL1Loss beta must be a finite number > 0, got -1"));
  EXPECT_THAT(ErrorOf(nn::DiceLoss({.smooth = 0})(x, x)),
              HasSubstr("DiceLoss smooth must be a finite number > 0, got 0"));
  EXPECT_THAT(ErrorOf(nn::KLDivLoss({.reduction = "total"})(x, x)),
              HasSubstr("KLDivLoss does not know the reduction 'total'; known are none, mean, batchmean, sum"));
}

}  // namespace
}  // namespace mpc
