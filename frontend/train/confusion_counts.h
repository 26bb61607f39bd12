// How often each label met each prediction. Not part of the public API.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/train/metric.h"
#include "frontend/train/metric_inputs.h"
#include "frontend/train/metric_state.h"

namespace mpc::internal {

/// Counts over (label, predicted class). The number of classes is that of the first batch.
class ConfusionCounts {
 public:
  void Clear();
  /// Counts one batch; an error counts nothing of it. See ConfusionMatrix for inputs and errors.
  absl::Status Update(const Tensor& predictions, const Tensor& labels, std::optional<std::int64_t> ignore_label);
  /// Errors (INVALID_ARGUMENT): both have counts, of different numbers of classes.
  absl::Status Merge(const ConfusionCounts& other);
  void Save(MetricStateWriter& writer) const;
  /// What Save has written. Counts that cannot be are refused by the reader.
  static ConfusionCounts Read(MetricStateReader& reader);

  std::int64_t classes() const { return classes_; }
  /// Positions that were counted.
  std::int64_t total() const;
  /// Positions with `label` whose prediction is class `predicted`.
  std::int64_t At(std::int64_t label, std::int64_t predicted) const;
  /// Positions of both label and prediction `c`.
  std::int64_t Right(std::int64_t c) const { return At(c, c); }
  /// Positions whose label is `label`, those without a prediction included.
  std::int64_t Labelled(std::int64_t label) const;
  /// Positions whose prediction is class `predicted`.
  std::int64_t Predicted(std::int64_t predicted) const;

 private:
  absl::Status CheckClasses(std::int64_t classes) const;

  std::int64_t classes_ = 0;
  std::vector<std::int64_t> counts_;  ///< [classes, classes + 1]; the last column counts NaN logits
};

/// Base of metrics that are functions of these counts.
class CountingMetric : public Metric {
 public:
  void Clear() override { counts_.Clear(); }
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) override {
    return counts_.Update(predictions, labels, ignore_label_);
  }
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status MergeState(std::string_view state) override;

 protected:
  explicit CountingMetric(std::optional<std::int64_t> ignore_label) : ignore_label_(ignore_label) {}
  const ConfusionCounts& counts() const { return counts_; }
  absl::Status MergeCounts(const CountingMetric& other) { return counts_.Merge(other.counts_); }

 private:
  std::optional<std::int64_t> ignore_label_;
  ConfusionCounts counts_;
};

}  // namespace mpc::internal
