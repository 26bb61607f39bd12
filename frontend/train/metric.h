// What Model::Eval measures: the base class of metrics and lists of them.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/graph/tensor.h"
#include "frontend/train/shared_or_borrowed.h"

namespace mpc {

/// Accumulates over the batches of an evaluation. Clear, then Update for every batch, then Eval.
class Metric {
 public:
  virtual ~Metric() = default;
  /// Forgets all batches.
  virtual void Clear() = 0;
  /// One batch of concrete tensors: the loss (one element, or one a row), the network's predictions, the labels.
  virtual absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) = 0;
  /// The value over the batches since Clear. Errors (FAILED_PRECONDITION): there was none.
  virtual absl::StatusOr<double> Eval() const = 0;
  /// Adds the batches that `other` has seen, as if this metric had seen them too. Several devices evaluate a share of
  /// the batches each, and their metrics are merged. An error changes nothing. Errors (INVALID_ARGUMENT): `other` is
  /// another kind of metric or has other options. Errors (UNIMPLEMENTED): the class of a user's own has no Merge.
  virtual absl::Status Merge(const Metric& other);
  /// What this metric has seen, as bytes that MergeState of another process reads: counts, sums as f64, the scores of
  /// RocAuc. The bits of every number are kept. Errors (UNIMPLEMENTED): the class of a user's own has no SaveState.
  virtual absl::StatusOr<std::string> SaveState() const;
  /// Merge with a metric whose SaveState gave `state`. An error changes nothing. Errors (INVALID_ARGUMENT): bytes of
  /// something else, of another kind of metric, of other options, of another version. So is a state that is truncated
  /// or damaged. Errors (UNIMPLEMENTED): the class of a user's own has no MergeState.
  virtual absl::Status MergeState(std::string_view state);
  /// Whether a smaller value is a better one, as of an error. Callbacks that watch the metric at mode "auto" ask it. A
  /// class of a user's own that says nothing counts as one of which more is better.
  virtual bool SmallerIsBetter() const { return false; }
  /// The kind with its options: "TopK(k = 5)". Errors of Merge name metrics so.
  virtual std::string Description() const { return "a metric"; }
};

/// Makes a metric with its default options by name: "accuracy", "auc", "confusion_matrix", "F1", "loss", "mae",
/// "mean_iou", "mse", "perplexity", "precision", "recall", or any "top_<k>_accuracy". The names of the classes are
/// known too. Further names are "acc", "roc_auc", "f1" and "top_<k>". Errors (INVALID_ARGUMENT): another name; the
/// known ones are listed.
absl::StatusOr<std::unique_ptr<Metric>> MakeMetric(std::string_view name);

/// One element of a MetricList: a known name, or a name with a metric. A temporary is moved in; a named object is
/// borrowed and must outlive the Model.
class MetricRef {
 public:
  MetricRef(const char* name) : name_(name) {}             // NOLINT(google-explicit-constructor): {"accuracy"}
  MetricRef(std::string name) : name_(std::move(name)) {}  // NOLINT(google-explicit-constructor)
  template <internal::DerivesFrom<Metric> Object>
  MetricRef(std::string name, Object&& metric)
      : name_(std::move(name)), metric_(internal::ShareOrBorrow<Metric>(std::forward<Object>(metric))) {}
  template <std::derived_from<Metric> Object>
  MetricRef(std::string name, std::shared_ptr<Object> metric) : name_(std::move(name)), metric_(std::move(metric)) {}

  const std::string& name() const { return name_; }
  const std::shared_ptr<Metric>& metric() const { return metric_; }

 private:
  std::string name_;
  std::shared_ptr<Metric> metric_;
};

/// The metrics of a Model under their names: `{"accuracy", "loss"}` or `{{"Accuracy", Accuracy()}}`.
class MetricList {
 public:
  using Entry = std::pair<std::string, std::shared_ptr<Metric>>;

  MetricList() = default;
  MetricList(std::initializer_list<MetricRef> metrics);  // NOLINT(google-explicit-constructor)
  explicit MetricList(const std::vector<MetricRef>& metrics);

  /// Why the list cannot be used: an unknown name, a name given twice.
  const absl::Status& status() const { return status_; }
  const std::vector<Entry>& entries() const { return entries_; }

  void Clear() const;
  /// Updates every metric. Errors carry the metric's name.
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) const;
  /// Values in the order of the entries. Errors carry the metric's name.
  absl::StatusOr<std::vector<std::pair<std::string, double>>> Eval() const;
  /// Merges each metric with the one of `other` in the same place. Errors carry the metric's name. Errors
  /// (INVALID_ARGUMENT): the lists have other names; then nothing is merged.
  absl::Status Merge(const MetricList& other) const;
  /// The states of all metrics in one. Errors carry the metric's name.
  absl::StatusOr<std::string> SaveState() const;
  /// Merge with a list whose SaveState gave `state`. Errors are those of Merge and of Metric::MergeState.
  absl::Status MergeState(std::string_view state) const;

 private:
  void Add(const MetricRef& metric);

  std::vector<Entry> entries_;
  absl::Status status_;
};

}  // namespace mpc
