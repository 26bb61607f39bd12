#include "frontend/train/metric.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "frontend/graph/class_labels.h"

namespace mpc {
namespace {

constexpr char kKnownNames[] = "accuracy (Accuracy, acc), loss (Loss), top_<k>_accuracy (top_<k>)";

absl::Status CheckConcrete(const Tensor& tensor, const char* what) {
  if (!tensor.status().ok()) return tensor.status();
  if (tensor.concrete()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("a metric needs concrete ", what, ", got ",
                                                 tensor.defined() ? "a symbolic tensor" : "an empty tensor"));
}

/// Class indices [N] of sparse or one-hot labels for predictions [N, C]. They are not yet checked against C.
absl::StatusOr<std::vector<std::int64_t>> ClassIndices(const Tensor& predictions, const Tensor& labels) {
  const std::int64_t rows = predictions.dim(0);
  const std::int64_t classes = predictions.dim(1);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(rows));
  const bool sparse = !IsFloating(labels.dtype()) && labels.dtype() != DType::kBool && labels.size() == rows &&
                      (labels.rank() == 1 || (labels.rank() == 2 && labels.dim(1) == 1)) && labels.dim(0) == rows;
  if (sparse) {
    const Tensor wide = labels.To(DType::kI64);
    const absl::Span<const std::int64_t> values = wide.data<std::int64_t>();
    std::copy(values.begin(), values.end(), indices.begin());
    return indices;
  }
  if (labels.shape() != predictions.shape()) {
    return absl::InvalidArgumentError(absl::StrCat("labels ", labels.spec().ToString(), " do not match predictions ",
                                                   predictions.spec().ToString(), ": expected integers [", rows,
                                                   "] or one-hot rows [", rows, ", ", classes, "]"));
  }
  const std::vector<float> values = labels.ToFloats();
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto begin = values.begin() + row * classes;
    indices[static_cast<std::size_t>(row)] = std::max_element(begin, begin + classes) - begin;
  }
  return indices;
}

/// True if fewer than `k` logits are larger than the label's.
bool IsAmongLargest(absl::Span<const float> logits, std::size_t label, std::int64_t k) {
  std::int64_t larger = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) return false;
    if (logits[i] > logits[label] || (logits[i] == logits[label] && i < label)) ++larger;
  }
  return larger < k;
}

absl::Status WithName(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("metric '", name, "': ", status.message()));
}

absl::Status NoBatch() { return absl::FailedPreconditionError("no batch was seen since Clear"); }

}  // namespace

void TopK::Clear() { right_ = rows_ = 0; }

absl::Status TopK::Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) {
  if (absl::Status status = CheckConcrete(predictions, "predictions"); !status.ok()) return status;
  if (absl::Status status = CheckConcrete(labels, "labels"); !status.ok()) return status;
  if (predictions.rank() != 2 || !IsFloating(predictions.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("predictions are logits [rows, classes], got ", predictions.spec().ToString()));
  }
  const std::int64_t rows = predictions.dim(0);
  const std::int64_t classes = predictions.dim(1);
  if (k_ < 1 || k_ > classes) {
    return absl::InvalidArgumentError(
        absl::StrCat("k is ", k_, ", it must be from 1 to the number of classes (", classes, ")"));
  }
  absl::StatusOr<std::vector<std::int64_t>> indices = ClassIndices(predictions, labels);
  if (!indices.ok()) return indices.status();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t label = (*indices)[static_cast<std::size_t>(row)];
    if (absl::Status status = internal::CheckLabel(label, row, classes); !status.ok()) return status;
  }
  const std::vector<float> logits = predictions.ToFloats();
  for (std::int64_t row = 0; row < rows; ++row) {
    const absl::Span<const float> row_logits = absl::MakeConstSpan(logits.data() + row * classes, classes);
    right_ += IsAmongLargest(row_logits, static_cast<std::size_t>((*indices)[static_cast<std::size_t>(row)]), k_);
  }
  rows_ += rows;
  return absl::OkStatus();
}

absl::StatusOr<double> TopK::Eval() const {
  if (rows_ == 0) return NoBatch();
  return static_cast<double>(right_) / static_cast<double>(rows_);
}

void Loss::Clear() { sum_ = rows_ = 0; }

absl::Status Loss::Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) {
  if (absl::Status status = CheckConcrete(loss, "loss"); !status.ok()) return status;
  if (!IsFloating(loss.dtype()) || loss.size() < 1) {
    return absl::InvalidArgumentError(absl::StrCat("the loss is floating, got ", loss.spec().ToString()));
  }
  double sum = 0;
  for (float value : loss.ToFloats()) sum += value;
  const double rows = predictions.concrete() ? static_cast<double>(predictions.dim(0)) : 1.0;
  sum_ += sum / static_cast<double>(loss.size()) * rows;
  rows_ += rows;
  return absl::OkStatus();
}

absl::StatusOr<double> Loss::Eval() const {
  if (rows_ == 0) return NoBatch();
  return sum_ / rows_;
}

absl::StatusOr<std::unique_ptr<Metric>> MakeMetric(std::string_view name) {
  if (name == "accuracy" || name == "Accuracy" || name == "acc") return std::make_unique<Accuracy>();
  if (name == "loss" || name == "Loss") return std::make_unique<Loss>();
  absl::string_view text(name.data(), name.size());
  std::int64_t k = 0;
  if (absl::ConsumePrefix(&text, "top_")) {
    absl::ConsumeSuffix(&text, "_accuracy");
    if (absl::SimpleAtoi(text, &k) && k >= 1) return std::make_unique<TopK>(k);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown metric '", std::string(name), "'; known are ", kKnownNames));
}

MetricList::MetricList(std::initializer_list<MetricRef> metrics) {
  for (const MetricRef& metric : metrics) Add(metric);
}

MetricList::MetricList(const std::vector<MetricRef>& metrics) {
  for (const MetricRef& metric : metrics) Add(metric);
}

void MetricList::Add(const MetricRef& metric) {
  const bool repeated =
      std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == metric.name(); });
  if (repeated) {
    status_.Update(absl::InvalidArgumentError(absl::StrCat("metric '", metric.name(), "' is given twice")));
    return;
  }
  if (metric.metric() != nullptr) {
    entries_.emplace_back(metric.name(), metric.metric());
    return;
  }
  absl::StatusOr<std::unique_ptr<Metric>> known = MakeMetric(metric.name());
  if (known.ok()) {
    entries_.emplace_back(metric.name(), *std::move(known));
  } else {
    status_.Update(known.status());
  }
}

void MetricList::Clear() const {
  for (const auto& [name, metric] : entries_) metric->Clear();
}

absl::Status MetricList::Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) const {
  if (!status_.ok()) return status_;
  for (const auto& [name, metric] : entries_) {
    if (absl::Status status = metric->Update(loss, predictions, labels); !status.ok()) return WithName(name, status);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::pair<std::string, double>>> MetricList::Eval() const {
  if (!status_.ok()) return status_;
  std::vector<std::pair<std::string, double>> values;
  for (const auto& [name, metric] : entries_) {
    absl::StatusOr<double> value = metric->Eval();
    if (!value.ok()) return WithName(name, value.status());
    values.emplace_back(name, *value);
  }
  return values;
}

}  // namespace mpc
