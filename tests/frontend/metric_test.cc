#include "frontend/train/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "frontend/train/loss_metrics.h"
#include "frontend/train/top_k.h"
#include "tests/frontend/error_of.h"

namespace mpc {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;

const Tensor kNoLoss = Tensor::Scalar(0.0f);

TEST(Accuracy, CountsRightRowsOverBatches) {
  Accuracy accuracy;
  const Tensor logits = Tensor::From<float>({1, 2, 0, 5, 4, 3}, {2, 3});
  ASSERT_TRUE(accuracy.Update(kNoLoss, logits, Tensor::From<std::int32_t>({1, 2}, {2})).ok());
  ASSERT_TRUE(accuracy.Update(kNoLoss, logits, Tensor::From<std::int64_t>({1, 0}, {2, 1})).ok());
  EXPECT_EQ(*accuracy.Eval(), 0.75);
  accuracy.Clear();
  EXPECT_EQ(accuracy.Eval().status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Accuracy, TakesOneHotLabels) {
  Accuracy accuracy;
  const Tensor logits = Tensor::From<float>({1, 2, 0, 5, 4, 3}, {2, 3});
  ASSERT_TRUE(accuracy.Update(kNoLoss, logits, Tensor::From<float>({0, 1, 0, 0, 1, 0}, {2, 3})).ok());
  EXPECT_EQ(*accuracy.Eval(), 0.5);
  ASSERT_TRUE(
      accuracy.Update(kNoLoss, logits.To(DType::kF16), Tensor::From<std::int32_t>({0, 1, 0, 1, 0, 0}, {2, 3})).ok());
  EXPECT_EQ(*accuracy.Eval(), 0.75);
}

TEST(Accuracy, OneLogitARowIsJudgedByItsSign) {
  const std::vector<float> logits = {-5, 5, 0, 5, NAN, NAN};
  const std::vector<float> labels = {1, 0, 0, 1, 0, 1};
  for (const Shape& shape : {Shape{6}, Shape{6, 1}}) {
    const Tensor predictions = Tensor::From(logits, shape), floating = Tensor::From(labels, shape);
    for (const Tensor& given : {floating, floating.To(DType::kI64), floating.To(DType::kBool)}) {
      Accuracy accuracy;
      ASSERT_TRUE(accuracy.Update(kNoLoss, predictions, given).ok()) << given.spec().ToString();
      EXPECT_EQ(*accuracy.Eval(), 2. / 6) << given.spec().ToString();
    }
  }
  Accuracy accuracy;
  EXPECT_THAT(ErrorOf(accuracy.Update(kNoLoss, Tensor::Zeros({2, 1}), Tensor::From<float>({0, 0.5}, {2, 1}))),
              HasSubstr("label 0.5 in row 1 is neither 0 nor 1"));
  EXPECT_THAT(ErrorOf(accuracy.Update(kNoLoss, Tensor::Zeros({2, 1}), Tensor::Zeros({3, 1}))),
              HasSubstr("expected 2 labels, each 0 or 1"));
  EXPECT_EQ(ErrorOf(TopK(2).Update(kNoLoss, Tensor::Zeros({2, 1}), Tensor::Zeros({2, 1}))),
            "k is 2, it must be 1 for one logit a row, got tensor<2x1xf32>");
  EXPECT_FALSE(accuracy.Eval().ok()) << "a refused batch leaves no trace";
}

TEST(Accuracy, RowsWithoutOneLargestEntryAreRefusedByTheirNumber) {
  const Tensor logits = Tensor::From<float>({1, 2, 0, 5, 4, 3}, {2, 3});
  Accuracy accuracy;
  for (const std::vector<float>& row : {std::vector<float>{0, 0, 0}, {0, 1, 1}, {-1, -2, -3}, {NAN, 0, 1}}) {
    std::vector<float> labels = {0, 1, 0};
    labels.insert(labels.end(), row.begin(), row.end());
    EXPECT_THAT(ErrorOf(accuracy.Update(kNoLoss, logits, Tensor::From(labels, {2, 3}))),
                HasSubstr("labels tensor<2x3xf32> in row 1 are not one-hot: expected one largest entry, above 0, among "
                          "the 3 classes"));
  }
  EXPECT_FALSE(accuracy.Eval().ok()) << "a refused batch leaves no trace";
  // Probabilities are taken: the largest entry is the label.
  ASSERT_TRUE(accuracy.Update(kNoLoss, logits, Tensor::From<float>({.1f, .8f, .1f, .2f, .5f, .3f}, {2, 3})).ok());
  EXPECT_EQ(*accuracy.Eval(), 0.5);
}

TEST(Accuracy, NanLogitsAreWrong) {
  Accuracy accuracy;
  const Tensor logits = Tensor::From<float>({NAN, 1, 1, NAN, NAN, NAN}, {3, 2});
  ASSERT_TRUE(accuracy.Update(kNoLoss, logits, Tensor::From<std::int32_t>({0, 0, 0}, {3})).ok());
  EXPECT_EQ(*accuracy.Eval(), 0.0);
}

TEST(Accuracy, ErrorsNameBothSpecsAndTheRow) {
  Accuracy accuracy;
  const Tensor logits = Tensor::Zeros({2, 3});
  absl::Status status = accuracy.Update(kNoLoss, logits, Tensor::Zeros({3}, DType::kI32));
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor<3xi32> do not match predictions tensor<2x3xf32>"));
  status = accuracy.Update(kNoLoss, logits, Tensor::Zeros({2}));
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor<2xf32>"));
  status = accuracy.Update(kNoLoss, logits, Tensor::From<std::int32_t>({0, 3}, {2}));
  EXPECT_THAT(std::string(status.message()), HasSubstr("label 3 in row 1 is out of range"));
  status = accuracy.Update(kNoLoss, Tensor::Zeros({2, 3, 1}), Tensor::Zeros({2}, DType::kI32));
  EXPECT_THAT(std::string(status.message()), HasSubstr("tensor<2x3x1xf32>"));
  EXPECT_FALSE(accuracy.Update(kNoLoss, Tensor(), Tensor()).ok());
  EXPECT_FALSE(accuracy.Eval().ok()) << "a refused batch leaves no trace";
}

TEST(TopK, LooksAtTheLargestK) {
  const Tensor logits = Tensor::From<float>({4, 3, 2, 1, 4, 3, 2, 1, 0, 0, 0, 0}, {3, 4});
  const Tensor labels = Tensor::From<std::int32_t>({1, 2, 1}, {3});
  TopK two(2);
  ASSERT_TRUE(two.Update(kNoLoss, logits, labels).ok());
  EXPECT_DOUBLE_EQ(*two.Eval(), 2.0 / 3.0);
  TopK five(5);
  EXPECT_THAT(std::string(five.Update(kNoLoss, logits, labels).message()), HasSubstr("k is 5"));
}

TEST(Accuracy, CountsEachPositionOfASequence) {
  // Two rows of three positions, two classes on axis 1, as CrossEntropyLoss takes them.
  const Tensor logits = Tensor::From<float>({9, 1, 1, 1, 9, 9, 9, 9, NAN, 1, 1, 1}, {2, 2, 3});
  const Tensor labels = Tensor::From<std::int32_t>({0, 1, 0, 0, 1, 1}, {2, 3});
  Accuracy accuracy;
  ASSERT_TRUE(accuracy.Update(kNoLoss, logits, labels).ok());
  EXPECT_EQ(*accuracy.Eval(), 3. / 6);
  Accuracy column;
  ASSERT_TRUE(column.Update(kNoLoss, logits, Tensor::From<std::int32_t>({0, 1, 0, 0, 1, 1}, {2, 1, 3})).ok());
  EXPECT_EQ(*column.Eval(), 3. / 6);
  Accuracy one_hot;
  const Tensor rows = Tensor::From<float>({1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 1}, {2, 2, 3});
  ASSERT_TRUE(one_hot.Update(kNoLoss, logits, rows).ok());
  EXPECT_EQ(*one_hot.Eval(), 3. / 6);
  TopK two(2);
  ASSERT_TRUE(two.Update(kNoLoss, logits, labels).ok());
  EXPECT_EQ(*two.Eval(), 5. / 6) << "a NaN is wrong";
  EXPECT_THAT(ErrorOf(accuracy.Update(kNoLoss, logits, Tensor::From<std::int32_t>({0, 1, 0, 0, 2, 1}, {2, 3}))),
              HasSubstr("label 2 in row 1 is out of range: there are 2 classes"));
}

TEST(Accuracy, TakesLabelsOfFlattenedRowsInAnyShape) {
  Accuracy accuracy;
  const Tensor logits = Tensor::From<float>({1, 2, 0, 5, 4, 3}, {2, 3});
  ASSERT_TRUE(accuracy.Update(kNoLoss, logits, Tensor::From<std::int32_t>({1, 2}, {1, 2})).ok());
  EXPECT_EQ(*accuracy.Eval(), 0.5);
}

TEST(Accuracy, ClassesOnTheLastAxisAreRefusedWithTheWayOut) {
  EXPECT_THAT(
      ErrorOf(Accuracy().Update(kNoLoss, Tensor::Zeros({2, 5, 4, 3}), Tensor::Zeros({2, 5, 4}, DType::kI32))),
      HasSubstr("expected integers [2, 4, 3] or one-hot rows [2, 5, 4, 3]; classes are on axis 1, and here they "
                "seem to be on the last one: transpose(logits, {0, 3, 1, 2}) moves them"));
}

TEST(TopK, LeavesIgnoredLabelsOut) {
  const Tensor logits = Tensor::From<float>({9, 1, 1, 1, 9, 9}, {1, 2, 3});
  const Tensor labels = Tensor::From<std::int32_t>({0, -100, 0}, {1, 3});
  Accuracy accuracy({.ignore_label = -100}), counted;
  ASSERT_TRUE(accuracy.Update(kNoLoss, logits, labels).ok());
  EXPECT_EQ(*accuracy.Eval(), 0.5);
  EXPECT_THAT(ErrorOf(counted.Update(kNoLoss, logits, labels)), HasSubstr("label -100 in row 0 is out of range"));
  Accuracy none({.ignore_label = 0});
  ASSERT_TRUE(none.Update(kNoLoss, Tensor::Zeros({2}), Tensor::Zeros({2}, DType::kI32)).ok());
  EXPECT_EQ(none.Eval().status().code(), absl::StatusCode::kFailedPrecondition) << "no position was counted";
  EXPECT_EQ(ErrorOf(counted.Merge(accuracy)), "TopK(k = 1) does not merge with TopK(k = 1, ignore_label = -100)");
}

TEST(Loss, WeighsBatchesByTheirRows) {
  Loss loss;
  ASSERT_TRUE(loss.Update(Tensor::Scalar(1.0f), Tensor::Zeros({3, 2}), Tensor()).ok());
  ASSERT_TRUE(loss.Update(Tensor::Scalar(5.0f), Tensor::Zeros({1, 2}), Tensor()).ok());
  EXPECT_EQ(*loss.Eval(), 2.0);
  ASSERT_TRUE(loss.Update(Tensor::From<float>({1, 3}, {2}), Tensor::Zeros({2, 2}), Tensor()).ok());
  EXPECT_EQ(*loss.Eval(), 2.0);
}

TEST(MakeMetric, KnowsItsNamesAndListsThem) {
  for (const char* name : {"accuracy",
                           "Accuracy",
                           "acc",
                           "loss",
                           "Loss",
                           "top_1_accuracy",
                           "top_5_accuracy",
                           "top_3",
                           "confusion_matrix",
                           "ConfusionMatrix",
                           "precision",
                           "recall",
                           "F1",
                           "f1",
                           "mean_iou",
                           "auc",
                           "roc_auc",
                           "mae",
                           "MAE",
                           "mse",
                           "MSE",
                           "perplexity",
                           "Precision",
                           "Recall",
                           "MeanIoU",
                           "RocAuc",
                           "Perplexity"}) {
    EXPECT_TRUE(MakeMetric(name).ok()) << name;
  }
  EXPECT_THAT(ErrorOf(MakeMetric("kappa").status()), HasSubstr("perplexity (Perplexity), precision (Precision)"));
  for (const char* name : {"precison", "", "top_", "top_0", "top_x_accuracy"}) {
    EXPECT_THAT(std::string(MakeMetric(name).status().message()), HasSubstr("known are accuracy")) << name;
  }
}

TEST(MetricList, TakesNamesAndObjects) {
  Loss named;
  const MetricList metrics = {"accuracy", {"mine", TopK(2)}, {"validation loss", named}};
  ASSERT_TRUE(metrics.status().ok());
  ASSERT_TRUE(metrics.Update(Tensor::Scalar(3.0f), Tensor::Zeros({1, 2}), Tensor::Zeros({1}, DType::kI32)).ok());
  const auto values = metrics.Eval();
  ASSERT_TRUE(values.ok());
  EXPECT_THAT(*values, ::testing::ElementsAre(std::pair<std::string, double>("accuracy", 1.0), ::testing::_,
                                              std::pair<std::string, double>("validation loss", 3.0)));
  EXPECT_EQ(*named.Eval(), 3.0);
  metrics.Clear();
  EXPECT_THAT(std::string(metrics.Eval().status().message()), HasSubstr("metric 'accuracy'"));
}

TEST(MetricList, KeepsTheFirstError) {
  EXPECT_THAT(std::string(MetricList({"acuracy", "loss"}).status().message()), HasSubstr("unknown metric 'acuracy'"));
  EXPECT_THAT(std::string(MetricList({"loss", "loss"}).status().message()), HasSubstr("given twice"));
}

TEST(TopK, MergesWithTheSameKOnly) {
  const Tensor logits = Tensor::From<float>({1, 2, 0, 5, 4, 3}, {2, 3});
  TopK whole(2), first(2), second(2);
  const Tensor a = Tensor::From<std::int32_t>({1, 2}, {2});
  const Tensor b = Tensor::From<std::int32_t>({2, 1}, {2});
  for (TopK* metric : {&whole, &first}) ASSERT_TRUE(metric->Update(kNoLoss, logits, a).ok());
  for (TopK* metric : {&whole, &second}) ASSERT_TRUE(metric->Update(kNoLoss, logits, b).ok());
  ASSERT_TRUE(first.Merge(second).ok());
  EXPECT_EQ(*first.Eval(), *whole.Eval());
  EXPECT_EQ(ErrorOf(first.Merge(TopK(3))), "TopK(k = 2) does not merge with TopK(k = 3)");
  EXPECT_EQ(ErrorOf(first.Merge(Loss())), "TopK(k = 2) does not merge with Loss");
  EXPECT_EQ(*first.Eval(), *whole.Eval()) << "a refused merge changes nothing";
}

TEST(Loss, MergeIsOneEvaluation) {
  Loss first, second;
  ASSERT_TRUE(first.Update(Tensor::Scalar(1.0f), Tensor::Zeros({3, 2}), Tensor()).ok());
  ASSERT_TRUE(second.Update(Tensor::Scalar(5.0f), Tensor::Zeros({1, 2}), Tensor()).ok());
  ASSERT_TRUE(first.Merge(second).ok());
  EXPECT_EQ(*first.Eval(), 2.0);
  EXPECT_EQ(ErrorOf(first.Merge(Accuracy())), "Loss does not merge with TopK(k = 1)");
}

/// A metric as a user may have written it before there was Merge.
class CountsBatches : public Metric {
 public:
  void Clear() override { batches_ = 0; }
  absl::Status Update(const Tensor&, const Tensor&, const Tensor&) override {
    ++batches_;
    return absl::OkStatus();
  }
  absl::StatusOr<double> Eval() const override { return batches_; }

 private:
  int batches_ = 0;
};

TEST(Metric, AUsersMetricNeedsNoMerge) {
  CountsBatches mine;
  EXPECT_EQ(mine.Merge(mine).code(), absl::StatusCode::kUnimplemented);
}

TEST(MetricList, MergesMetricByMetric) {
  const MetricList first = {"accuracy", "loss"};
  const MetricList second = {"accuracy", "loss"};
  const Tensor right = Tensor::Zeros({1}, DType::kI32);
  ASSERT_TRUE(first.Update(Tensor::Scalar(3.0f), Tensor::Zeros({1, 2}), right).ok());
  ASSERT_TRUE(second.Update(Tensor::Scalar(1.0f), Tensor::Zeros({1, 2}), Tensor::Full({1}, 1, DType::kI32)).ok());
  ASSERT_TRUE(first.Merge(second).ok());
  EXPECT_EQ((*first.Eval())[0].second, 0.5);
  EXPECT_EQ((*first.Eval())[1].second, 2.0);
  EXPECT_EQ(ErrorOf(first.Merge({"loss"})), "metrics {accuracy, loss} do not merge with metrics {loss}");
  EXPECT_EQ(ErrorOf(first.Merge({{"accuracy", TopK(2)}, "loss"})),
            "metric 'accuracy': TopK(k = 1) does not merge with TopK(k = 2)");
}

}  // namespace
}  // namespace mpc
