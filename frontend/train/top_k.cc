#include "frontend/train/top_k.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "frontend/graph/class_labels.h"
#include "frontend/train/metric_inputs.h"
#include "frontend/train/metric_state.h"

namespace mpc {
namespace {

/// True if fewer than `k` logits are larger than the label's.
bool IsAmongLargest(absl::Span<const float> logits, std::size_t label, std::int64_t k) {
  std::int64_t larger = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) return false;
    if (logits[i] > logits[label] || (logits[i] == logits[label] && i < label)) ++larger;
  }
  return larger < k;
}

absl::Status CheckK(std::int64_t k, const Tensor& predictions) {
  if (internal::IsBinaryLogits(predictions)) {
    if (k == 1) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("k is ", k, ", it must be 1 for one logit a row, got ", predictions.spec().ToString()));
  }
  if (predictions.rank() != 2 || !IsFloating(predictions.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat("predictions are logits [rows, classes] or [rows], got ", predictions.spec().ToString()));
  }
  const std::int64_t classes = predictions.dim(1);
  if (k >= 1 && k <= classes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("k is ", k, ", it must be from 1 to the number of classes (", classes, ")"));
}

/// Rows whose logit is on the side of 0 that their label names. NaN is on none.
std::int64_t RightSigns(const std::vector<float>& logits, const std::vector<std::int64_t>& labels) {
  std::int64_t right = 0;
  for (std::size_t row = 0; row < logits.size(); ++row) {
    right += !std::isnan(logits[row]) && (logits[row] > 0) == (labels[row] == 1);
  }
  return right;
}

}  // namespace

void TopK::Clear() { right_ = rows_ = 0; }

absl::Status TopK::Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) {
  if (absl::Status status = internal::CheckConcrete(predictions, "predictions"); !status.ok()) return status;
  if (absl::Status status = internal::CheckConcrete(labels, "labels"); !status.ok()) return status;
  if (absl::Status status = CheckK(k_, predictions); !status.ok()) return status;
  const bool binary = internal::IsBinaryLogits(predictions);
  const std::int64_t rows = predictions.dim(0);
  const std::int64_t classes = binary ? 2 : predictions.dim(1);
  absl::StatusOr<std::vector<std::int64_t>> indices =
      binary ? internal::BinaryIndices(predictions, labels) : internal::ClassIndices(predictions, labels);
  if (!indices.ok()) return indices.status();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t label = (*indices)[static_cast<std::size_t>(row)];
    if (absl::Status status = internal::CheckLabel(label, row, classes); !status.ok()) return status;
  }
  const std::vector<float> logits = predictions.ToFloats();
  rows_ += rows;
  if (binary) {
    right_ += RightSigns(logits, *indices);
    return absl::OkStatus();
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const absl::Span<const float> row_logits = absl::MakeConstSpan(logits.data() + row * classes, classes);
    right_ += IsAmongLargest(row_logits, static_cast<std::size_t>((*indices)[static_cast<std::size_t>(row)]), k_);
  }
  return absl::OkStatus();
}

absl::StatusOr<double> TopK::Eval() const {
  if (rows_ == 0) return internal::NoBatch();
  return static_cast<double>(right_) / static_cast<double>(rows_);
}

absl::Status TopK::Merge(const Metric& other) {
  const auto* same = dynamic_cast<const TopK*>(&other);
  if (same == nullptr || same->k_ != k_) return internal::CannotMerge(*this, other);
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

std::string TopK::Description() const { return absl::StrCat("TopK(k = ", k_, ")"); }

}  // namespace mpc
