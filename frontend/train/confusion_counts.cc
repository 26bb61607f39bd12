#include "frontend/train/confusion_counts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace mpc::internal {
namespace {

/// Index of the largest of `count` logits that lie `stride` apart, the first of equal ones; `count` if one is NaN.
std::int64_t PredictedClass(const float* logits, std::int64_t count, std::int64_t stride) {
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::isnan(logits[i * stride])) return count;
    if (logits[i * stride] > logits[largest * stride]) largest = i;
  }
  return largest;
}

/// The predicted class of each position; `classes` where a logit is NaN.
std::vector<std::int64_t> PredictedClasses(const Tensor& predictions, std::int64_t classes) {
  const std::vector<float> logits = predictions.ToFloats();
  std::vector<std::int64_t> predicted;
  if (IsBinaryLogits(predictions)) {
    for (float logit : logits) predicted.push_back(std::isnan(logit) ? classes : logit > 0);
    return predicted;
  }
  const std::int64_t rows = predictions.dim(0);
  const std::int64_t inner = predictions.size() / std::max<std::int64_t>(1, rows * classes);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t i = 0; i < inner; ++i) {
      predicted.push_back(PredictedClass(logits.data() + row * classes * inner + i, classes, inner));
    }
  }
  return predicted;
}

}  // namespace

void ConfusionCounts::Clear() {
  classes_ = 0;
  counts_.clear();
}

absl::Status ConfusionCounts::CheckClasses(std::int64_t classes) const {
  if (classes_ == 0 || classes_ == classes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("predictions have ", classes, " classes, and those before them ", classes_));
}

absl::Status ConfusionCounts::Update(const Tensor& predictions, const Tensor& labels,
                                     std::optional<std::int64_t> ignore_label) {
  if (absl::Status status = CheckConcrete(predictions, "predictions"); !status.ok()) return status;
  if (absl::Status status = CheckConcrete(labels, "labels"); !status.ok()) return status;
  const bool binary = IsBinaryLogits(predictions);
  if (!IsFloating(predictions.dtype()) || predictions.size() == 0 || (!binary && predictions.rank() < 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat("predictions are logits [rows, classes, ...] or [rows], got ", predictions.spec().ToString()));
  }
  const std::int64_t classes = binary ? 2 : predictions.dim(1);
  if (absl::Status status = CheckClasses(classes); !status.ok()) return status;
  absl::StatusOr<std::vector<std::int64_t>> indices =
      binary ? BinaryIndices(predictions, labels, ignore_label) : ClassIndices(predictions, labels);
  if (!indices.ok()) return indices.status();
  absl::Status status = CheckLabels(*indices, predictions.dim(0), classes, ignore_label);
  if (!status.ok()) return status;

  classes_ = classes;
  counts_.resize(static_cast<std::size_t>(classes * (classes + 1)));
  const std::vector<std::int64_t> predicted = PredictedClasses(predictions, classes);
  for (std::size_t i = 0; i < predicted.size(); ++i) {
    const std::int64_t label = (*indices)[i];
    if (label != ignore_label) ++counts_[static_cast<std::size_t>(label * (classes + 1) + predicted[i])];
  }
  return absl::OkStatus();
}

absl::Status ConfusionCounts::Merge(const ConfusionCounts& other) {
  if (other.classes_ == 0) return absl::OkStatus();
  if (absl::Status status = CheckClasses(other.classes_); !status.ok()) return status;
  classes_ = other.classes_;
  counts_.resize(other.counts_.size());
  for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  return absl::OkStatus();
}

void ConfusionCounts::Save(MetricStateWriter& writer) const {
  writer.AddInteger(classes_);
  writer.AddIntegers(counts_);
}

ConfusionCounts ConfusionCounts::Read(MetricStateReader& reader) {
  ConfusionCounts read;
  read.classes_ = reader.Count();
  read.counts_ = reader.Counts();
  const auto counts = static_cast<std::int64_t>(read.counts_.size());
  if (read.classes_ > counts || read.classes_ * (read.classes_ + 1) != counts) {
    reader.Refuse(absl::StrCat("the state has ", counts, " counts of ", read.classes_, " classes"));
    read.Clear();
  }
  return read;
}

absl::StatusOr<std::string> CountingMetric::SaveState() const {
  MetricStateWriter writer(*this);
  counts_.Save(writer);
  return writer.Finish();
}

absl::Status CountingMetric::MergeState(std::string_view state) {
  MetricStateReader reader(*this, state);
  const ConfusionCounts read = ConfusionCounts::Read(reader);
  if (absl::Status status = reader.Finish(); !status.ok()) return status;
  return counts_.Merge(read);
}

std::int64_t ConfusionCounts::total() const { return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}); }

std::int64_t ConfusionCounts::At(std::int64_t label, std::int64_t predicted) const {
  return counts_[static_cast<std::size_t>(label * (classes_ + 1) + predicted)];
}

std::int64_t ConfusionCounts::Labelled(std::int64_t label) const {
  std::int64_t sum = 0;
  for (std::int64_t predicted = 0; predicted <= classes_; ++predicted) sum += At(label, predicted);
  return sum;
}

std::int64_t ConfusionCounts::Predicted(std::int64_t predicted) const {
  std::int64_t sum = 0;
  for (std::int64_t label = 0; label < classes_; ++label) sum += At(label, predicted);
  return sum;
}

}  // namespace mpc::internal
