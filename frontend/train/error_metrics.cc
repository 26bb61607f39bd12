#include "frontend/train/error_metrics.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/train/metric_inputs.h"
#include "frontend/train/metric_state.h"

namespace mpc {

absl::Status ErrorMetric::Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) {
  if (absl::Status status = internal::CheckConcrete(predictions, "predictions"); !status.ok()) return status;
  if (absl::Status status = internal::CheckConcrete(labels, "labels"); !status.ok()) return status;
  if (!IsFloating(predictions.dtype()) || predictions.rank() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("predictions are floating [rows, ...], got ", predictions.spec().ToString()));
  }
  if (labels.size() != predictions.size() || labels.rank() < 1 || labels.dim(0) != predictions.dim(0)) {
    return absl::InvalidArgumentError(absl::StrCat("labels ", labels.spec().ToString(), " do not match predictions ",
                                                   predictions.spec().ToString(), ": rows and elements are as many"));
  }
  const std::vector<float> predicted = predictions.ToFloats();
  const std::vector<float> expected = labels.ToFloats();
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    sum_ += ErrorOf(static_cast<double>(predicted[i]) - static_cast<double>(expected[i]));
  }
  count_ += static_cast<double>(options_.per_element ? predictions.size() : predictions.dim(0));
  return absl::OkStatus();
}

absl::StatusOr<double> ErrorMetric::Eval() const {
  if (count_ == 0) return internal::NoBatch();
  return sum_ / count_;
}

absl::Status ErrorMetric::Merge(const Metric& other) {
  const auto* same = dynamic_cast<const ErrorMetric*>(&other);
  if (same == nullptr || same->name_ != name_ || same->options_ != options_) {
    return internal::CannotMerge(*this, other);
  }
  sum_ += same->sum_;
  count_ += same->count_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> ErrorMetric::SaveState() const {
  internal::MetricStateWriter writer(*this);
  writer.AddNumber(sum_);
  writer.AddNumber(count_);
  return writer.Finish();
}

absl::Status ErrorMetric::MergeState(std::string_view state) {
  internal::MetricStateReader reader(*this, state);
  const double sum = reader.Number();
  const double count = reader.WholeNumber();
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  sum_ += sum;
  count_ += count;
  return absl::OkStatus();
}

std::string ErrorMetric::Description() const {
  return absl::StrCat(name_, "(per_element = ", options_.per_element ? "true" : "false", ")");
}

double MAE::ErrorOf(double difference) const { return std::abs(difference); }

double MSE::ErrorOf(double difference) const { return difference * difference; }

}  // namespace mpc
