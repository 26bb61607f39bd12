// The state of metrics as bytes: merging by them is Merge, and no damaged byte passes.
#include "frontend/train/metric_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/train/class_scores.h"
#include "frontend/train/confusion_matrix.h"
#include "frontend/train/error_metrics.h"
#include "frontend/train/loss_metrics.h"
#include "frontend/train/mean_iou.h"
#include "frontend/train/roc_auc.h"
#include "frontend/train/top_k.h"
#include "runtime/checksum.h"
#include "tests/frontend/error_of.h"

namespace mpc {
namespace {

using testing::ErrorOf;
using ::testing::HasSubstr;

struct Batch {
  Tensor loss;
  Tensor predictions;
  Tensor labels;
};

float DrawNumber(std::mt19937& random) { return static_cast<float>(random() % 2001) / 1000.0f - 1.0f; }

/// 1 to 8 rows with labels below `classes`; the last logit may be a NaN.
Batch DrawClasses(std::mt19937& random, std::int64_t classes) {
  const auto rows = 1 + static_cast<std::int64_t>(random() % 8);
  std::vector<float> logits(static_cast<std::size_t>(rows * classes));
  for (float& logit : logits) logit = DrawNumber(random);
  if (random() % 4 == 0) logits.back() = std::numeric_limits<float>::quiet_NaN();
  std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
  for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % static_cast<unsigned>(classes));
  return {Tensor::Scalar(DrawNumber(random)), Tensor::From(logits, {rows, classes}), Tensor::From(labels, {rows})};
}

Batch DrawThreeClasses(std::mt19937& random) { return DrawClasses(random, 3); }
Batch DrawTwoClasses(std::mt19937& random) { return DrawClasses(random, 2); }

Batch DrawRegression(std::mt19937& random) {
  const auto rows = 1 + static_cast<std::int64_t>(random() % 8);
  std::vector<float> predictions(static_cast<std::size_t>(rows * 2));
  std::vector<float> labels(predictions.size());
  for (float& number : predictions) number = DrawNumber(random);
  for (float& number : labels) number = DrawNumber(random);
  return {Tensor::Scalar(0.0f), Tensor::From(predictions, {rows, 2}), Tensor::From(labels, {rows, 2})};
}

struct Case {
  std::function<std::unique_ptr<Metric>()> make;
  Batch (*draw)(std::mt19937& random);
};

template <typename M, typename... Options>
Case CaseOf(Batch (*draw)(std::mt19937& random), Options... options) {
  return {[options...] { return std::make_unique<M>(options...); }, draw};
}

std::vector<Case> Cases() {
  return {
      CaseOf<Loss>(DrawThreeClasses),
      CaseOf<Perplexity>(DrawThreeClasses, PerplexityOptions{.ignore_label = 1}),
      CaseOf<Accuracy>(DrawThreeClasses),
      CaseOf<TopK>(DrawThreeClasses, 2),
      CaseOf<TopK>(DrawThreeClasses, 2, TopKOptions{.ignore_label = 1}),
      CaseOf<Precision>(DrawThreeClasses),
      CaseOf<Recall>(DrawThreeClasses, ClassScoreOptions{.average = Average::kMicro}),
      CaseOf<F1>(DrawTwoClasses, ClassScoreOptions{.average = Average::kBinary}),
      CaseOf<ConfusionMatrix>(DrawThreeClasses),
      CaseOf<MeanIoU>(DrawThreeClasses, MeanIoUOptions{.ignore_label = 2}),
      CaseOf<RocAuc>(DrawTwoClasses),
      CaseOf<MAE>(DrawRegression),
      CaseOf<MSE>(DrawRegression, ErrorMetricOptions{.per_element = true}),
  };
}

/// A metric that has seen `batches` drawn batches.
std::unique_ptr<Metric> Seen(const Case& tested, unsigned seed, int batches) {
  std::mt19937 random(seed);
  std::unique_ptr<Metric> metric = tested.make();
  for (int i = 0; i < batches; ++i) {
    const Batch batch = tested.draw(random);
    EXPECT_TRUE(metric->Update(batch.loss, batch.predictions, batch.labels).ok());
  }
  return metric;
}

TEST(MetricState, MergesToTheBitsOfMerge) {
  for (const Case& tested : Cases()) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const int first_batches = static_cast<int>(seed % 3);
      const std::unique_ptr<Metric> by_merge = Seen(tested, seed, first_batches);
      const std::unique_ptr<Metric> by_state = Seen(tested, seed, first_batches);
      SCOPED_TRACE(by_merge->Description());
      for (unsigned rank = 1; rank < 4; ++rank) {
        const std::unique_ptr<Metric> other = Seen(tested, 100 * seed + rank, static_cast<int>((seed + rank) % 4));
        ASSERT_TRUE(by_merge->Merge(*other).ok());
        ASSERT_TRUE(by_state->MergeState(*other->SaveState()).ok());
      }
      EXPECT_EQ(*by_state->SaveState(), *by_merge->SaveState());
      const absl::StatusOr<double> expected = by_merge->Eval();
      const absl::StatusOr<double> value = by_state->Eval();
      ASSERT_EQ(value.status(), expected.status());
      if (expected.ok()) {
        EXPECT_EQ(std::memcmp(&*value, &*expected, sizeof(double)), 0);
      }
    }
  }
}

TEST(MetricState, StandsInTheOrderOfRanks) {
  // Sums of f64 depend on their order, and merging in the order of ranks fixes it.
  Loss first, second;
  ASSERT_TRUE(first.Update(Tensor::Scalar(0.1f), Tensor(), Tensor()).ok());
  ASSERT_TRUE(second.Update(Tensor::Scalar(0.7f), Tensor(), Tensor()).ok());
  Loss merged;
  for (const Loss* rank : {&first, &second}) ASSERT_TRUE(merged.MergeState(*rank->SaveState()).ok());
  ASSERT_TRUE(first.Merge(second).ok());
  EXPECT_EQ(*merged.Eval(), *first.Eval());
}

/// The bytes with the checksum that they should have.
std::string WithChecksum(std::string state) {
  state.resize(state.size() - 4);
  runtime::Checksum checksum;
  checksum.Add(state.data(), state.size());
  const std::uint32_t value = checksum.value();
  return state.append(reinterpret_cast<const char*>(&value), sizeof value);
}

TEST(MetricState, RefusesEveryTruncationAndEveryFlippedBit) {
  for (const Case& tested : Cases()) {
    const std::unique_ptr<Metric> metric = Seen(tested, 1, 3);
    SCOPED_TRACE(metric->Description());
    const std::string state = *metric->SaveState();
    const auto expect_refused = [&](const std::string& damaged) {
      const absl::Status status = metric->MergeState(damaged);
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(ErrorOf(status), HasSubstr(absl::StrCat(metric->Description(), ": ")));
    };
    for (std::size_t size = 0; size < state.size(); ++size) expect_refused(state.substr(0, size));
    expect_refused(state + "x");
    for (std::size_t bit = 0; bit < 8 * state.size(); ++bit) {
      std::string damaged = state;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
      expect_refused(damaged);
    }
    EXPECT_EQ(*metric->SaveState(), state) << "an error changes nothing";
  }
}

TEST(MetricState, ForgedBytesMayBeRefusedOrMergedButNeverCrash) {
  std::mt19937 random(5);
  for (const Case& tested : Cases()) {
    const std::string state = *Seen(tested, 1, 3)->SaveState();
    for (int trial = 0; trial < 500; ++trial) {
      std::string forged = state;
      if (random() % 4 == 0) forged.resize(24 + random() % (forged.size() - 24));
      if (forged.size() < 28) continue;
      for (unsigned changes = 1 + random() % 3; changes > 0; --changes) {
        const std::uint32_t draw = random();
        forged[random() % forged.size()] = static_cast<char>(draw % 3 == 0 ? 0xff : draw >> 8);
      }
      const std::unique_ptr<Metric> metric = Seen(tested, 2, 1);
      const absl::Status status = metric->MergeState(WithChecksum(forged));
      EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
      metric->Eval().status().IgnoreError();
    }
  }
}

TEST(MetricState, NamesWhatIsWrong) {
  Accuracy accuracy;
  EXPECT_EQ(ErrorOf(accuracy.MergeState("")), "TopK(k = 1): these bytes are no state of a metric");
  EXPECT_EQ(ErrorOf(accuracy.MergeState(*Loss().SaveState())), "TopK(k = 1): the state is that of Loss");
  EXPECT_EQ(ErrorOf(accuracy.MergeState(*TopK(2).SaveState())), "TopK(k = 1): the state is that of TopK(k = 2)");
  const std::string state = *accuracy.SaveState();
  EXPECT_EQ(ErrorOf(accuracy.MergeState(state.substr(0, state.size() - 1))),
            "TopK(k = 1): the state is truncated or damaged");
  std::string newer = state;
  newer[16] = 2;
  EXPECT_EQ(ErrorOf(accuracy.MergeState(WithChecksum(newer))),
            "TopK(k = 1): the state has version 2, and version 1 is accepted");
  std::string negative = state;
  negative[negative.size() - 5] = static_cast<char>(0xff);
  EXPECT_THAT(ErrorOf(accuracy.MergeState(WithChecksum(negative))), HasSubstr("the state has a count of -"));
}

TEST(MetricState, OtherNumbersOfClassesDoNotMerge) {
  const std::unique_ptr<Metric> three = Seen(CaseOf<ConfusionMatrix>(DrawThreeClasses), 1, 2);
  const std::unique_ptr<Metric> two = Seen(CaseOf<ConfusionMatrix>(DrawTwoClasses), 1, 2);
  EXPECT_THAT(ErrorOf(three->MergeState(*two->SaveState())), HasSubstr("2 classes"));
}

/// A metric of a user's own.
class Unsaved : public Metric {
 public:
  void Clear() override {}
  absl::Status Update(const Tensor&, const Tensor&, const Tensor&) override { return absl::OkStatus(); }
  absl::StatusOr<double> Eval() const override { return 0; }
};

TEST(MetricState, AUsersMetricNeedsNone) {
  Unsaved metric;
  EXPECT_EQ(metric.SaveState().status(), absl::UnimplementedError("a metric has no SaveState"));
  EXPECT_EQ(metric.MergeState(""), absl::UnimplementedError("a metric has no MergeState"));
  const MetricList list = {"loss", {"mine", Unsaved()}};
  EXPECT_EQ(ErrorOf(list.SaveState().status()), "metric 'mine': a metric has no SaveState");
}

TEST(MetricState, AListMergesMetricByMetric) {
  const MetricList whole = {"accuracy", "loss", "auc"};
  const MetricList first = {"accuracy", "loss", "auc"};
  const MetricList second = {"accuracy", "loss", "auc"};
  std::mt19937 random(3);
  for (int i = 0; i < 6; ++i) {
    const Batch batch = DrawTwoClasses(random);
    ASSERT_TRUE(whole.Update(batch.loss, batch.predictions, batch.labels).ok());
    ASSERT_TRUE((i < 3 ? first : second).Update(batch.loss, batch.predictions, batch.labels).ok());
  }
  const std::string state = *second.SaveState();
  ASSERT_TRUE(first.MergeState(state).ok());
  EXPECT_EQ((*first.Eval())[0], (*whole.Eval())[0]);
  EXPECT_EQ((*first.Eval())[2], (*whole.Eval())[2]);
  EXPECT_EQ(ErrorOf(MetricList({"loss"}).MergeState(state)),
            "metrics {loss}: the state is that of metrics {accuracy, loss, auc}");
  const std::string before = *first.SaveState();
  for (std::size_t size = 0; size < state.size(); ++size) {
    EXPECT_FALSE(first.MergeState(state.substr(0, size)).ok());
  }
  EXPECT_EQ(*first.SaveState(), before);
}

}  // namespace
}  // namespace mpc
