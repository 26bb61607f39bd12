#include "frontend/train/roc_auc.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "frontend/graph/class_labels.h"
#include "frontend/train/metric_inputs.h"
#include "frontend/train/metric_state.h"

namespace mpc {
namespace {

std::vector<float> SortedNumbers(std::vector<float> scores) {
  std::erase_if(scores, [](float score) { return std::isnan(score); });
  std::ranges::sort(scores);
  return scores;
}

void Append(std::vector<float>& scores, const std::vector<float>& more) {
  const std::size_t count = more.size();  // `more` may be `scores`
  scores.reserve(scores.size() + count);
  for (std::size_t i = 0; i < count; ++i) scores.push_back(more[i]);
}

}  // namespace

void RocAuc::Clear() {
  positive_.clear();
  negative_.clear();
}

absl::Status RocAuc::Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) {
  if (absl::Status status = internal::CheckConcrete(predictions, "predictions"); !status.ok()) return status;
  if (absl::Status status = internal::CheckConcrete(labels, "labels"); !status.ok()) return status;
  const bool binary = internal::IsBinaryLogits(predictions);
  const bool pairs = IsFloating(predictions.dtype()) && predictions.rank() == 2 && predictions.dim(1) == 2;
  if (!binary && !pairs) {
    return absl::InvalidArgumentError(
        absl::StrCat("predictions are scores [rows] or logits [rows, 2], got ", predictions.spec().ToString()));
  }
  absl::StatusOr<std::vector<std::int64_t>> indices =
      binary ? internal::BinaryIndices(predictions, labels) : internal::ClassIndices(predictions, labels);
  if (!indices.ok()) return indices.status();
  for (std::size_t row = 0; row < indices->size(); ++row) {
    absl::Status status = internal::CheckLabel((*indices)[row], static_cast<std::int64_t>(row), 2);
    if (!status.ok()) return status;
  }
  const std::vector<float> logits = predictions.ToFloats();
  for (std::size_t row = 0; row < indices->size(); ++row) {
    const float score = binary ? logits[row] : logits[2 * row + 1] - logits[2 * row];
    ((*indices)[row] == 1 ? positive_ : negative_).push_back(score);
  }
  return absl::OkStatus();
}

absl::StatusOr<double> RocAuc::Eval() const {
  if (positive_.empty() && negative_.empty()) return internal::NoBatch();
  if (positive_.empty() || negative_.empty()) {
    return absl::FailedPreconditionError(absl::StrCat("the area under the ROC curve needs rows of both classes, got ",
                                                      positive_.size(), " of class 1 and ", negative_.size(),
                                                      " of class 0"));
  }
  const std::vector<float> negative = SortedNumbers(negative_);
  // Each pair counts 2 where it is won and 1 where it is equal, so that the sum is an integer.
  std::int64_t halves = 0;
  for (float score : positive_) {
    if (std::isnan(score)) continue;
    const auto [below, above] = std::ranges::equal_range(negative, score);
    halves += (below - negative.begin()) + (above - negative.begin());
  }
  return static_cast<double>(halves) / 2 / static_cast<double>(positive_.size()) /
         static_cast<double>(negative_.size());
}

absl::Status RocAuc::Merge(const Metric& other) {
  const auto* same = dynamic_cast<const RocAuc*>(&other);
  if (same == nullptr) return internal::CannotMerge(*this, other);
  Append(positive_, same->positive_);
  Append(negative_, same->negative_);
  return absl::OkStatus();
}

absl::StatusOr<std::string> RocAuc::SaveState() const {
  internal::MetricStateWriter writer(*this);
  writer.AddFloats(positive_);
  writer.AddFloats(negative_);
  return writer.Finish();
}

absl::Status RocAuc::MergeState(std::string_view state) {
  internal::MetricStateReader reader(*this, state);
  const std::vector<float> positive = reader.Floats();
  const std::vector<float> negative = reader.Floats();
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  Append(positive_, positive);
  Append(negative_, negative);
  return absl::OkStatus();
}

}  // namespace mpc
