#include "frontend/train/metric.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "frontend/train/class_scores.h"
#include "frontend/train/confusion_matrix.h"
#include "frontend/train/error_metrics.h"
#include "frontend/train/loss_metrics.h"
#include "frontend/train/mean_iou.h"
#include "frontend/train/metric_state.h"
#include "frontend/train/roc_auc.h"
#include "frontend/train/top_k.h"

namespace mpc {
namespace {

template <typename T>
std::unique_ptr<Metric> Make() {
  return std::make_unique<T>();
}

struct KnownMetric {
  std::string name;
  std::vector<std::string> other_names;
  std::unique_ptr<Metric> (*make)();
};

const std::vector<KnownMetric>& KnownMetrics() {
  static const auto* const metrics = new std::vector<KnownMetric>{
      {.name = "accuracy", .other_names = {"Accuracy", "acc"}, .make = &Make<Accuracy>},
      {.name = "auc", .other_names = {"roc_auc", "RocAuc"}, .make = &Make<RocAuc>},
      {.name = "confusion_matrix", .other_names = {"ConfusionMatrix"}, .make = &Make<ConfusionMatrix>},
      {.name = "F1", .other_names = {"f1"}, .make = &Make<F1>},
      {.name = "loss", .other_names = {"Loss"}, .make = &Make<Loss>},
      {.name = "mae", .other_names = {"MAE"}, .make = &Make<MAE>},
      {.name = "mean_iou", .other_names = {"MeanIoU"}, .make = &Make<MeanIoU>},
      {.name = "mse", .other_names = {"MSE"}, .make = &Make<MSE>},
      {.name = "perplexity", .other_names = {"Perplexity"}, .make = &Make<Perplexity>},
      {.name = "precision", .other_names = {"Precision"}, .make = &Make<Precision>},
      {.name = "recall", .other_names = {"Recall"}, .make = &Make<Recall>},
  };
  return *metrics;
}

std::string KnownNames() {
  std::string names;
  for (const KnownMetric& known : KnownMetrics()) {
    absl::StrAppend(&names, known.name, " (", absl::StrJoin(known.other_names, ", "), "), ");
  }
  return names + "top_<k>_accuracy (top_<k>)";
}

absl::Status WithName(const std::string& name, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("metric '", name, "': ", status.message()));
}

std::string Names(const std::vector<MetricList::Entry>& entries) {
  const auto name = [](std::string* text, const MetricList::Entry& entry) { absl::StrAppend(text, entry.first); };
  return absl::StrCat("{", absl::StrJoin(entries, ", ", name), "}");
}

}  // namespace

absl::Status Metric::Merge(const Metric&) {
  return absl::UnimplementedError(absl::StrCat(Description(), " has no Merge"));
}

absl::StatusOr<std::string> Metric::SaveState() const {
  return absl::UnimplementedError(absl::StrCat(Description(), " has no SaveState"));
}

absl::Status Metric::MergeState(std::string_view) {
  return absl::UnimplementedError(absl::StrCat(Description(), " has no MergeState"));
}

absl::StatusOr<std::unique_ptr<Metric>> MakeMetric(std::string_view name) {
  for (const KnownMetric& known : KnownMetrics()) {
    const auto& others = known.other_names;
    if (name == known.name || std::ranges::find(others, name) != others.end()) return known.make();
  }
  absl::string_view text(name.data(), name.size());
  std::int64_t k = 0;
  if (absl::ConsumePrefix(&text, "top_")) {
    absl::ConsumeSuffix(&text, "_accuracy");
    if (absl::SimpleAtoi(text, &k) && k >= 1) return std::make_unique<TopK>(k);
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown metric '", std::string(name), "'; known are ", KnownNames()));
}

MetricList::MetricList(std::initializer_list<MetricRef> metrics) {
  for (const MetricRef& metric : metrics) Add(metric);
}

MetricList::MetricList(const std::vector<MetricRef>& metrics) {
  for (const MetricRef& metric : metrics) Add(metric);
}

void MetricList::Add(const MetricRef& metric) {
  const bool repeated = std::ranges::any_of(entries_, [&](const Entry& entry) { return entry.first == metric.name(); });
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

absl::Status MetricList::Merge(const MetricList& other) const {
  if (!status_.ok()) return status_;
  if (!other.status_.ok()) return other.status_;
  const auto same_name = [](const Entry& a, const Entry& b) { return a.first == b.first; };
  if (!std::ranges::equal(entries_, other.entries_, same_name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("metrics ", Names(entries_), " do not merge with metrics ", Names(other.entries_)));
  }
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto& [name, metric] = entries_[i];
    if (absl::Status status = metric->Merge(*other.entries_[i].second); !status.ok()) return WithName(name, status);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> MetricList::SaveState() const {
  if (!status_.ok()) return status_;
  internal::MetricStateWriter writer(absl::StrCat("metrics ", Names(entries_)));
  for (const auto& [name, metric] : entries_) {
    absl::StatusOr<std::string> state = metric->SaveState();
    if (!state.ok()) return WithName(name, state.status());
    writer.AddText(*state);
  }
  return writer.Finish();
}

absl::Status MetricList::MergeState(std::string_view state) const {
  if (!status_.ok()) return status_;
  internal::MetricStateReader reader(absl::StrCat("metrics ", Names(entries_)), state);
  std::vector<std::string_view> states;
  for (std::size_t i = 0; i < entries_.size(); ++i) states.push_back(reader.Text());
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto& [name, metric] = entries_[i];
    if (absl::Status status = metric->MergeState(states[i]); !status.ok()) return WithName(name, status);
  }
  return absl::OkStatus();
}

}  // namespace mpc
