// Metrics of classification: values by hand and by formula over drawn data, averages, what is undefined, merging.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "frontend/train/class_scores.h"
#include "frontend/train/confusion_matrix.h"
#include "frontend/train/mean_iou.h"
#include "frontend/train/roc_auc.h"
#include "tests/frontend/error_of.h"

namespace mpc {
namespace {

using ::testing::ElementsAre;
using testing::ErrorOf;
using ::testing::HasSubstr;

const Tensor kNoLoss = Tensor::Scalar(0.0f);

/// Logits whose largest entry is the given class of three.
Tensor Predicting(const std::vector<int>& classes) {
  std::vector<float> logits(classes.size() * 3);
  for (std::size_t row = 0; row < classes.size(); ++row) logits[3 * row + static_cast<std::size_t>(classes[row])] = 1;
  return Tensor::From(logits, {static_cast<std::int64_t>(classes.size()), 3});
}

Tensor Labels(const std::vector<std::int32_t>& labels) {
  return Tensor::From(labels, {static_cast<std::int64_t>(labels.size())});
}

/// A batch of three classes: labels 0 0 0 1 1 2 meet predictions 0 0 1 1 2 1.
template <typename M>
M Seen(M metric) {
  EXPECT_TRUE(metric.Update(kNoLoss, Predicting({0, 0, 1, 1, 2, 1}), Labels({0, 0, 0, 1, 1, 2})).ok());
  return metric;
}

struct Drawn {
  Tensor predictions;
  Tensor labels;
};

/// Segmentations [4, 3, 5] with drawn logits and labels.
Drawn Draw(unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<float> logits(4 * 3 * 5);
  for (float& logit : logits) logit = static_cast<float>(generator() % 7);
  std::vector<std::int32_t> labels(4 * 5);
  for (std::int32_t& label : labels) label = static_cast<std::int32_t>(generator() % 3);
  return {Tensor::From(logits, {4, 3, 5}), Tensor::From(labels, {4, 5})};
}

/// Updates `whole` with all batches, two parts with some each, and expects the merged parts to give the same bits.
template <typename M>
void ExpectMergeIsExact(M whole, M first, M second) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    const Drawn batch = Draw(seed);
    ASSERT_TRUE(whole.Update(kNoLoss, batch.predictions, batch.labels).ok());
    ASSERT_TRUE((seed < 2 ? first : second).Update(kNoLoss, batch.predictions, batch.labels).ok());
  }
  M of_nothing = first;
  of_nothing.Clear();
  ASSERT_TRUE(first.Merge(of_nothing).ok());
  ASSERT_TRUE(first.Merge(second).ok());
  EXPECT_EQ(*first.Eval(), *whole.Eval());
  ASSERT_TRUE(of_nothing.Merge(whole).ok());
  EXPECT_EQ(*of_nothing.Eval(), *whole.Eval());
}

TEST(ConfusionMatrix, RowsAreLabelsAndColumnsPredictions) {
  const ConfusionMatrix matrix = Seen(ConfusionMatrix());
  EXPECT_EQ(matrix.Matrix()->shape(), Shape({3, 3}));
  EXPECT_THAT(matrix.Matrix()->ToFloats(), ElementsAre(2, 1, 0, 0, 1, 1, 0, 1, 0));
  EXPECT_EQ(*matrix.Eval(), 0.5);
}

TEST(ConfusionMatrix, Normalizes) {
  const auto entries = [](ConfusionNormalization normalize) {
    const Tensor matrix = *Seen(ConfusionMatrix({.normalize = normalize})).Matrix();
    const absl::Span<const double> values = matrix.data<double>();
    return std::vector<double>(values.begin(), values.end());
  };
  EXPECT_THAT(entries(ConfusionNormalization::kTarget), ElementsAre(2. / 3, 1. / 3, 0, 0, 0.5, 0.5, 0, 1, 0));
  EXPECT_THAT(entries(ConfusionNormalization::kPrediction), ElementsAre(1, 1. / 3, 0, 0, 1. / 3, 1, 0, 1. / 3, 0));
  EXPECT_THAT(entries(ConfusionNormalization::kAll), ElementsAre(2. / 6, 1. / 6, 0, 0, 1. / 6, 1. / 6, 0, 1. / 6, 0));
}

TEST(ConfusionMatrix, ANanLogitHasNoPrediction) {
  ConfusionMatrix matrix({.normalize = ConfusionNormalization::kTarget});
  ASSERT_TRUE(matrix.Update(kNoLoss, Tensor::From<float>({NAN, 1, 1, 0}, {2, 2}), Labels({0, 0})).ok());
  EXPECT_THAT(matrix.Matrix()->ToFloats(), ElementsAre(0.5, 0, 0, 0));
  EXPECT_EQ(*matrix.Eval(), 0.5);
}

TEST(ConfusionMatrix, TakesOneHotLabelsImagesAndOneLogitARow) {
  ConfusionMatrix one_hot;
  ASSERT_TRUE(one_hot.Update(kNoLoss, Predicting({0, 1}), Predicting({2, 1})).ok());
  EXPECT_THAT(one_hot.Matrix()->ToFloats(), ElementsAre(0, 0, 0, 0, 1, 0, 1, 0, 0));
  ConfusionMatrix images;  // two positions: class 0 at the first, class 1 at the second
  const Tensor labels = Tensor::From<std::int64_t>({0, 0}, {1, 1, 2});
  ASSERT_TRUE(images.Update(kNoLoss, Tensor::From<float>({5, 1, 4, 2}, {1, 2, 2}), labels).ok());
  EXPECT_THAT(images.Matrix()->ToFloats(), ElementsAre(1, 1, 0, 0));
  ConfusionMatrix binary;
  const Tensor logits = Tensor::From<float>({-1, 0, 2, NAN}, {4, 1});
  ASSERT_TRUE(binary.Update(kNoLoss, logits, Tensor::From<float>({0, 1, 1, 1}, {4, 1})).ok());
  EXPECT_THAT(binary.Matrix()->ToFloats(), ElementsAre(1, 0, 1, 1)) << "0 is not greater than 0";
}

TEST(ConfusionMatrix, ErrorsNameRowLabelAndSpecs) {
  ConfusionMatrix matrix;
  EXPECT_THAT(ErrorOf(matrix.Update(kNoLoss, Predicting({0, 1}), Labels({0, 3}))),
              HasSubstr("label 3 in row 1 is out of range: there are 3 classes"));
  EXPECT_THAT(ErrorOf(matrix.Update(kNoLoss, Tensor::Zeros({2, 3, 2}), Tensor::Full({2, 2}, -1, DType::kI32))),
              HasSubstr("label -1 in row 0"));
  EXPECT_THAT(ErrorOf(matrix.Update(kNoLoss, Predicting({0, 1}), Labels({0}))),
              HasSubstr("labels tensor<1xi32> do not match predictions tensor<2x3xf32>: expected integers [2]"));
  EXPECT_THAT(ErrorOf(matrix.Update(kNoLoss, Tensor::Zeros({2}), Tensor::From<float>({0, 0.5}, {2}))),
              HasSubstr("label 0.5 in row 1 is neither 0 nor 1"));
  EXPECT_EQ(matrix.Eval().status().code(), absl::StatusCode::kFailedPrecondition) << "a refused batch leaves no trace";
  EXPECT_EQ(matrix.Matrix().status().code(), absl::StatusCode::kFailedPrecondition);
  matrix = Seen(matrix);
  EXPECT_THAT(ErrorOf(matrix.Update(kNoLoss, Tensor::Zeros({1, 2}), Labels({0}))),
              HasSubstr("predictions have 2 classes, and those before them 3"));
}

TEST(ConfusionMatrix, IgnoredLabelsAreLeftOut) {
  ConfusionMatrix matrix({.ignore_label = 255});
  ASSERT_TRUE(matrix.Update(kNoLoss, Predicting({0, 1, 2}), Labels({0, 255, 1})).ok());
  EXPECT_THAT(matrix.Matrix()->ToFloats(), ElementsAre(1, 0, 0, 0, 0, 1, 0, 0, 0));
  ConfusionMatrix nothing({.ignore_label = 0});
  ASSERT_TRUE(nothing.Update(kNoLoss, Predicting({0}), Labels({0})).ok());
  EXPECT_EQ(nothing.Eval().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ConfusionMatrix, MergeRefusesOthersByName) {
  ConfusionMatrix matrix = Seen(ConfusionMatrix());
  EXPECT_EQ(ErrorOf(matrix.Merge(ConfusionMatrix({.normalize = ConfusionNormalization::kAll}))),
            "ConfusionMatrix(normalize = none, ignore_label = none) does not merge with ConfusionMatrix(normalize = "
            "all, ignore_label = none)");
  EXPECT_THAT(ErrorOf(matrix.Merge(MeanIoU())), HasSubstr("does not merge with MeanIoU(ignore_label = none)"));
  ConfusionMatrix two_classes;
  ASSERT_TRUE(two_classes.Update(kNoLoss, Tensor::Zeros({1, 2}), Labels({0})).ok());
  EXPECT_THAT(ErrorOf(matrix.Merge(two_classes)), HasSubstr("2 classes"));
  EXPECT_EQ(*matrix.Eval(), 0.5);
}

TEST(ConfusionMatrix, MergeOfPartsIsTheWhole) {
  ExpectMergeIsExact(ConfusionMatrix(), ConfusionMatrix(), ConfusionMatrix());
}

TEST(Precision, MacroIsTheMeanOverClassesAndMicroOverPositions) {
  EXPECT_THAT(*Seen(Precision()).PerClass(), ElementsAre(1, 1. / 3, 0));
  EXPECT_DOUBLE_EQ(*Seen(Precision()).Eval(), (1 + 1. / 3) / 3);
  EXPECT_EQ(*Seen(Precision({.average = Average::kMicro})).Eval(), 0.5);
}

TEST(Recall, MacroIsTheMeanOverClassesAndMicroOverPositions) {
  EXPECT_THAT(*Seen(Recall()).PerClass(), ElementsAre(2. / 3, 0.5, 0));
  EXPECT_DOUBLE_EQ(*Seen(Recall()).Eval(), (2. / 3 + 0.5) / 3);
  EXPECT_EQ(*Seen(Recall({.average = Average::kMicro})).Eval(), 0.5);
}

TEST(F1, IsTheHarmonicMeanOfEachClass) {
  EXPECT_THAT(*Seen(F1()).PerClass(), ElementsAre(4. / 5, 2. / 5, 0));
  EXPECT_DOUBLE_EQ(*Seen(F1()).Eval(), (4. / 5 + 2. / 5) / 3);
  EXPECT_EQ(*Seen(F1({.average = Average::kMicro})).Eval(), 0.5);
}

TEST(ClassScore, BinaryIsClassOne) {
  const Tensor logits = Tensor::From<float>({1, -1, 1, 1}, {4});
  const Tensor labels = Labels({1, 1, 0, 1});
  Precision precision({.average = Average::kBinary});
  Recall recall({.average = Average::kBinary});
  ASSERT_TRUE(precision.Update(kNoLoss, logits, labels).ok());
  ASSERT_TRUE(recall.Update(kNoLoss, logits, labels).ok());
  EXPECT_EQ(*precision.Eval(), 2. / 3);
  EXPECT_EQ(*recall.Eval(), 2. / 3);
  EXPECT_THAT(ErrorOf(F1({.average = Average::kBinary}).Update(kNoLoss, Predicting({0}), Labels({0}))),
              HasSubstr("Average::kBinary takes two classes, got 3 in predictions tensor<1x3xf32>"));
}

TEST(ClassScore, ZeroByZeroIsAnOption) {
  const auto of_class_two = [](Precision metric) {
    EXPECT_TRUE(metric.Update(kNoLoss, Predicting({0}), Labels({0})).ok());
    return metric;
  };
  EXPECT_THAT(*of_class_two(Precision()).PerClass(), ElementsAre(1, 0, 0));
  EXPECT_THAT(*of_class_two(Precision({.zero_division = 1})).PerClass(), ElementsAre(1, 1, 1));
  EXPECT_EQ(Precision().Eval().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ClassScore, ANanLogitIsAFalseNegativeOnly) {
  const Tensor logits = Tensor::From<float>({NAN, 1, 1, 0}, {2, 2});
  Precision precision;
  Recall recall;
  ASSERT_TRUE(precision.Update(kNoLoss, logits, Labels({0, 0})).ok());
  ASSERT_TRUE(recall.Update(kNoLoss, logits, Labels({0, 0})).ok());
  EXPECT_THAT(*precision.PerClass(), ElementsAre(1, 0));
  EXPECT_THAT(*recall.PerClass(), ElementsAre(0.5, 0));
}

TEST(ClassScore, AgreesWithItsFormulaOnDrawnData) {
  F1 f1;
  std::vector<double> right(3), labelled(3), predicted(3);
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Drawn batch = Draw(seed);
    ASSERT_TRUE(f1.Update(kNoLoss, batch.predictions, batch.labels).ok());
    const std::vector<float> logits = batch.predictions.ToFloats();
    const absl::Span<const std::int32_t> labels = batch.labels.data<std::int32_t>();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      std::size_t best = 0;
      const auto logit = [&](std::size_t c) { return logits[(i / 5) * 15 + c * 5 + i % 5]; };
      for (std::size_t c = 1; c < 3; ++c) best = logit(c) > logit(best) ? c : best;
      const auto label = static_cast<std::size_t>(labels[i]);
      ++labelled[label];
      ++predicted[best];
      right[best] += best == label;
    }
  }
  for (std::size_t c = 0; c < 3; ++c) {
    const double precision = right[c] / predicted[c];
    const double recall = right[c] / labelled[c];
    // The two forms of the quotient round four times.
    EXPECT_NEAR((*f1.PerClass())[c], 2 * precision * recall / (precision + recall), 4 * std::ldexp(1.0, -53));
  }
}

TEST(ClassScore, MergeOfPartsIsTheWhole) {
  ExpectMergeIsExact(Precision(), Precision(), Precision());
  ExpectMergeIsExact(Recall(), Recall(), Recall());
  ExpectMergeIsExact(F1(), F1(), F1());
  Precision precision;
  EXPECT_THAT(
      ErrorOf(precision.Merge(Recall())),
      HasSubstr("Precision(average = macro, zero_division = 0, ignore_label = none) does not merge with Recall("));
  EXPECT_THAT(ErrorOf(precision.Merge(Precision({.average = Average::kMicro}))), HasSubstr("average = micro"));
}

TEST(MeanIoU, LeavesOutClassesThatNeverOccur) {
  EXPECT_DOUBLE_EQ(*Seen(MeanIoU()).Eval(), (2. / 3 + 1. / 4 + 0) / 3);
  MeanIoU without_two;
  ASSERT_TRUE(without_two.Update(kNoLoss, Predicting({0, 1, 1}), Labels({0, 0, 1})).ok());
  EXPECT_THAT(*without_two.PerClass(),
              ElementsAre(std::optional<double>(0.5), std::optional<double>(0.5), std::optional<double>()));
  EXPECT_EQ(*without_two.Eval(), 0.5);
  EXPECT_EQ(MeanIoU().Eval().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(MeanIoU, IgnoresALabelAndMerges) {
  MeanIoU metric({.ignore_label = 255});
  ASSERT_TRUE(metric.Update(kNoLoss, Predicting({0, 1}), Labels({0, 255})).ok());
  EXPECT_EQ(*metric.Eval(), 1);
  ExpectMergeIsExact(MeanIoU(), MeanIoU(), MeanIoU());
  EXPECT_THAT(ErrorOf(metric.Merge(MeanIoU())),
              HasSubstr("MeanIoU(ignore_label = 255) does not merge with MeanIoU(ignore_label = none)"));
}

TEST(RocAuc, CountsOrderedPairs) {
  RocAuc auc;
  // Of the four pairs two are won, one is equal, one is lost.
  const Tensor scores = Tensor::From<float>({0.8f, 0.3f, 0.3f, 0.5f}, {4});
  ASSERT_TRUE(auc.Update(kNoLoss, scores, Labels({1, 1, 0, 0})).ok());
  EXPECT_EQ(*auc.Eval(), 2.5 / 4);
}

TEST(RocAuc, TakesTwoLogitsARowAndNanLosesEveryPair) {
  RocAuc auc;
  const Tensor logits = Tensor::From<float>({0, 1, 1, 0, NAN, 9, -9, NAN}, {4, 2});
  ASSERT_TRUE(auc.Update(kNoLoss, logits, Labels({1, 0, 1, 0})).ok());
  EXPECT_EQ(*auc.Eval(), 1. / 4);
}

TEST(RocAuc, AgreesWithAllPairsOnDrawnDataAndMergesExactly) {
  std::mt19937 generator(5);
  RocAuc whole, first, second;
  std::vector<float> all_scores;
  std::vector<std::int32_t> all_labels;
  for (int batch = 0; batch < 6; ++batch) {
    std::vector<float> scores(20);
    std::vector<std::int32_t> labels(20);
    for (float& score : scores) score = static_cast<float>(generator() % 11);
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(generator() % 2);
    for (RocAuc* metric : {&whole, batch < 2 ? &first : &second}) {
      ASSERT_TRUE(metric->Update(kNoLoss, Tensor::From(scores, {20, 1}), Labels(labels)).ok());
    }
    all_scores.insert(all_scores.end(), scores.begin(), scores.end());
    all_labels.insert(all_labels.end(), labels.begin(), labels.end());
  }
  double won = 0, pairs = 0;
  for (std::size_t i = 0; i < all_scores.size(); ++i) {
    for (std::size_t j = 0; j < all_scores.size(); ++j) {
      if (all_labels[i] != 1 || all_labels[j] != 0) continue;
      ++pairs;
      won += all_scores[i] > all_scores[j] ? 1 : all_scores[i] == all_scores[j] ? 0.5 : 0;
    }
  }
  // One division rounds once, two divisions twice.
  EXPECT_NEAR(*whole.Eval(), won / pairs, 3 * std::ldexp(1.0, -53));
  ASSERT_TRUE(first.Merge(second).ok());
  EXPECT_EQ(*first.Eval(), *whole.Eval());
  ASSERT_TRUE(whole.Merge(whole).ok());
  EXPECT_EQ(*first.Eval(), *whole.Eval()) << "every pair four times";
}

TEST(RocAuc, NeedsBothClasses) {
  RocAuc auc;
  EXPECT_EQ(auc.Eval().status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(auc.Update(kNoLoss, Tensor::Zeros({2}), Labels({1, 1})).ok());
  EXPECT_THAT(ErrorOf(auc.Eval().status()), HasSubstr("needs rows of both classes, got 2 of class 1 and 0 of class 0"));
  EXPECT_THAT(ErrorOf(auc.Update(kNoLoss, Tensor::Zeros({2}), Labels({1, 2}))), HasSubstr("label 2 in row 1"));
  EXPECT_THAT(ErrorOf(auc.Update(kNoLoss, Tensor::Zeros({1, 2}), Labels({2}))), HasSubstr("label 2 in row 0"));
  EXPECT_THAT(ErrorOf(auc.Update(kNoLoss, Tensor::Zeros({1, 3}), Labels({2}))), HasSubstr("tensor<1x3xf32>"));
  EXPECT_THAT(ErrorOf(auc.Merge(Precision())), HasSubstr("RocAuc does not merge with Precision("));
}

}  // namespace
}  // namespace mpc
