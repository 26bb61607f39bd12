#include "frontend/train/loss_metrics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "frontend/graph/class_labels.h"
#include "frontend/train/metric_inputs.h"
#include "frontend/train/metric_state.h"

namespace mpc {
namespace {

/// -log softmax(logits)[label].
double CrossEntropy(absl::Span<const float> logits, std::int64_t label) {
  double largest = logits[0];
  for (float logit : logits) {
    if (std::isnan(logit)) return logit;
    largest = std::max<double>(largest, logit);
  }
  double sum = 0;
  for (float logit : logits) sum += std::exp(logit - largest);
  return largest + std::log(sum) - logits[static_cast<std::size_t>(label)];
}

}  // namespace

void Loss::Clear() { sum_ = rows_ = 0; }

absl::Status Loss::Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) {
  if (absl::Status status = internal::CheckConcrete(loss, "loss"); !status.ok()) return status;
  if (!predictions.status().ok()) return predictions.status();
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
  if (rows_ == 0) return internal::NoBatch();
  return sum_ / rows_;
}

absl::Status Loss::Merge(const Metric& other) {
  const auto* same = dynamic_cast<const Loss*>(&other);
  if (same == nullptr) return internal::CannotMerge(*this, other);
  sum_ += same->sum_;
  rows_ += same->rows_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Loss::SaveState() const {
  internal::MetricStateWriter writer(*this);
  writer.AddNumber(sum_);
  writer.AddNumber(rows_);
  return writer.Finish();
}

absl::Status Loss::MergeState(std::string_view state) {
  internal::MetricStateReader reader(*this, state);
  const double sum = reader.Number();
  const double rows = reader.WholeNumber();
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  sum_ += sum;
  rows_ += rows;
  return absl::OkStatus();
}

void Perplexity::Clear() { sum_ = rows_ = 0; }

absl::Status Perplexity::Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) {
  if (absl::Status status = internal::CheckConcrete(predictions, "predictions"); !status.ok()) return status;
  if (absl::Status status = internal::CheckConcrete(labels, "labels"); !status.ok()) return status;
  if (!IsFloating(predictions.dtype()) || predictions.rank() < 1 || predictions.size() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("predictions are logits [..., classes], got ", predictions.spec().ToString()));
  }
  const std::int64_t classes = predictions.dim(-1);
  const std::int64_t rows = predictions.size() / classes;
  if (!internal::AreIntegers(labels) || labels.size() != rows) {
    return absl::InvalidArgumentError(absl::StrCat("labels ", labels.spec().ToString(), " do not match predictions ",
                                                   predictions.spec().ToString(), ": expected ", rows, " integers"));
  }
  const std::vector<std::int64_t> indices = internal::ToIntegers(labels);
  const std::vector<float> logits = predictions.ToFloats();
  double sum = 0;
  std::int64_t counted = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t label = indices[static_cast<std::size_t>(row)];
    if (label == options_.ignore_label) continue;
    if (absl::Status status = internal::CheckLabel(label, row, classes); !status.ok()) return status;
    sum += CrossEntropy(absl::MakeConstSpan(logits.data() + row * classes, classes), label);
    ++counted;
  }
  sum_ += sum;
  rows_ += counted;
  return absl::OkStatus();
}

absl::StatusOr<double> Perplexity::Eval() const {
  if (rows_ == 0) return internal::NoBatch();
  return std::exp(sum_ / static_cast<double>(rows_));
}

absl::Status Perplexity::Merge(const Metric& other) {
  const auto* same = dynamic_cast<const Perplexity*>(&other);
  if (same == nullptr || same->options_ != options_) return internal::CannotMerge(*this, other);
  sum_ += same->sum_;
  rows_ += same->rows_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> Perplexity::SaveState() const {
  internal::MetricStateWriter writer(*this);
  writer.AddNumber(sum_);
  writer.AddInteger(rows_);
  return writer.Finish();
}

absl::Status Perplexity::MergeState(std::string_view state) {
  internal::MetricStateReader reader(*this, state);
  const double sum = reader.Number();
  const std::int64_t rows = reader.Count();
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  sum_ += sum;
  rows_ += rows;
  return absl::OkStatus();
}

std::string Perplexity::Description() const {
  return absl::StrCat("Perplexity(ignore_label = ", internal::OrNone(options_.ignore_label), ")");
}

}  // namespace mpc
