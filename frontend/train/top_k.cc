#include "frontend/train/top_k.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/train/metric_inputs.h"
#include "frontend/train/metric_state.h"

namespace mpc {
namespace {

/// True if fewer than `k` of `count` logits, which lie `stride` apart, are larger than the label's.
bool IsAmongLargest(const float* logits, std::int64_t count, std::int64_t stride, std::int64_t label, std::int64_t k) {
  std::int64_t larger = 0;
  const float of_label = logits[label * stride];
  for (std::int64_t i = 0; i < count; ++i) {
    const float logit = logits[i * stride];
    if (std::isnan(logit)) return false;
    if (logit > of_label || (logit == of_label && i < label)) ++larger;
  }
  return larger < k;
}

absl::Status CheckK(std::int64_t k, const Tensor& predictions) {
  if (internal::IsBinaryLogits(predictions)) {
    if (k == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("k is ", k, ", it must be 1 for one logit a row, got ", predictions.spec().ToString()));
  }
  if (predictions.rank() < 2 || !IsFloating(predictions.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("predictions are logits [rows, classes, ...] or [rows], got ", predictions.spec().ToString()));
  }
  const std::int64_t classes = predictions.dim(1);
  if (k >= 1 && k <= classes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("k is ", k, ", it must be from 1 to the number of classes (", classes, ")"));
}

/// Whether the logit is on the side of 0 that the label names. NaN is on none.
bool IsRightSign(float logit, std::int64_t label) { return !std::isnan(logit) && (logit > 0) == (label == 1); }

}  // namespace

void TopK::Clear() { right_ = rows_ = 0; }

absl::Status TopK::Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) {
  if (absl::Status status = internal::CheckConcrete(predictions, "predictions"); !status.ok()) return status;
  if (absl::Status status = internal::CheckConcrete(labels, "labels"); !status.ok()) return status;
  if (absl::Status status = CheckK(k_, predictions); !status.ok()) return status;
  const bool binary = internal::IsBinaryLogits(predictions);
  const std::int64_t rows = predictions.dim(0);
  const std::int64_t classes = binary ? 2 : predictions.dim(1);
  const std::optional<std::int64_t> ignored = options_.ignore_label;
  absl::StatusOr<std::vector<std::int64_t>> indices =
      binary ? internal::BinaryIndices(predictions, labels, ignored) : internal::ClassIndices(predictions, labels);
  if (!indices.ok()) return indices.status();
  if (absl::Status status = internal::CheckLabels(*indices, rows, classes, ignored); !status.ok()) return status;
  const std::vector<float> logits = predictions.ToFloats();
  const std::int64_t inner = static_cast<std::int64_t>(indices->size()) / std::max<std::int64_t>(1, rows);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(indices->size()); ++i) {
    const std::int64_t label = (*indices)[static_cast<std::size_t>(i)];
    if (label == ignored) continue;
    ++rows_;
    // Position i % inner of row i / inner.
    right_ += binary
                  ? IsRightSign(logits[static_cast<std::size_t>(i)], label)
                  : IsAmongLargest(logits.data() + i / inner * classes * inner + i % inner, classes, inner, label, k_);
  }
  return absl::OkStatus();
}

absl::StatusOr<double> TopK::Eval() const {
  if (rows_ == 0) return internal::NoBatch();
  return static_cast<double>(right_) / static_cast<double>(rows_);
}

absl::Status TopK::Merge(const Metric& other) {
  const auto* same = dynamic_cast<const TopK*>(&other);
  if (same == nullptr || same->k_ != k_ || same->options_ != options_) return internal::CannotMerge(*this, other);
  right_ += same->right_;
  rows_ += same->rows_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> TopK::SaveState() const {
  internal::MetricStateWriter writer(*this);
  writer.AddInteger(right_);
  writer.AddInteger(rows_);
  return writer.Finish();
}

absl::Status TopK::MergeState(std::string_view state) {
  internal::MetricStateReader reader(*this, state);
  const std::int64_t right = reader.Count();
  const std::int64_t rows = reader.Count();
  if (right > rows) reader.Refuse(absl::StrCat("the state has ", right, " right rows of ", rows));
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  right_ += right;
  rows_ += rows;
  return absl::OkStatus();
}

std::string TopK::Description() const {
  // States of earlier versions have the name without options.
  if (!options_.ignore_label.has_value()) return absl::StrCat("TopK(k = ", k_, ")");
  return absl::StrCat("TopK(k = ", k_, ", ignore_label = ", *options_.ignore_label, ")");
}

}  // namespace mpc
