// What Model::Eval measures: the base class and the ready-made metrics.
#pragma once

#include <cstdint>
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
};

/// Share of rows whose label is among the k largest logits. A row with a NaN logit counts as wrong. Of equal logits the
/// one with the lower index is larger.
///
/// Predictions: floating [N, C]. Labels: integers [N] or [N, 1] in [0, C), or one-hot [N, C] of any type (the largest
/// entry is the label). Errors (INVALID_ARGUMENT): other shapes, both specs named; a label out of range with its row; k
/// > C.
class TopK : public Metric {
 public:
  explicit TopK(std::int64_t k) : k_(k) {}
  void Clear() override;
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) override;
  absl::StatusOr<double> Eval() const override;

 private:
  std::int64_t k_;
  std::int64_t right_ = 0;
  std::int64_t rows_ = 0;
};

/// TopK(1).
class Accuracy : public TopK {
 public:
  Accuracy() : TopK(1) {}
};

/// Mean loss over rows. The mean loss of each batch is weighted by the batch's rows: extent 0 of the predictions, or 1
/// without predictions.
class Loss : public Metric {
 public:
  void Clear() override;
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) override;
  absl::StatusOr<double> Eval() const override;

 private:
  double sum_ = 0;
  double rows_ = 0;
};

/// Makes a metric by name: "accuracy", "Accuracy", "acc"; "loss", "Loss"; "top_1_accuracy", "top_5_accuracy", any
/// "top_<k>_accuracy" or "top_<k>". Errors (INVALID_ARGUMENT): another name; the known ones are listed.
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

 private:
  void Add(const MetricRef& metric);

  std::vector<Entry> entries_;
  absl::Status status_;
};

}  // namespace mpc
