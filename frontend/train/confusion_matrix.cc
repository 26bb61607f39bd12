#include "frontend/train/confusion_matrix.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace mpc {
namespace {

const char* Name(ConfusionNormalization normalization) {
  switch (normalization) {
    case ConfusionNormalization::kNone:
      return "none";
    case ConfusionNormalization::kTarget:
      return "target";
    case ConfusionNormalization::kPrediction:
      return "prediction";
    case ConfusionNormalization::kAll:
      return "all";
  }
  return "";
}

}  // namespace

absl::StatusOr<double> ConfusionMatrix::Eval() const {
  const std::int64_t total = counts().total();
  if (total == 0) return internal::NoBatch();
  std::int64_t right = 0;
  for (std::int64_t c = 0; c < counts().classes(); ++c) right += counts().Right(c);
  return static_cast<double>(right) / static_cast<double>(total);
}

std::int64_t ConfusionMatrix::Divisor(std::int64_t label, std::int64_t predicted) const {
  switch (options_.normalize) {
    case ConfusionNormalization::kNone:
      return 1;
    case ConfusionNormalization::kTarget:
      return counts().Labelled(label);
    case ConfusionNormalization::kPrediction:
      return counts().Predicted(predicted);
    case ConfusionNormalization::kAll:
      return counts().total();
  }
  return 1;
}

absl::StatusOr<Tensor> ConfusionMatrix::Matrix() const {
  if (counts().total() == 0) return internal::NoBatch();
  const std::int64_t classes = counts().classes();
  std::vector<double> entries;
  for (std::int64_t label = 0; label < classes; ++label) {
    for (std::int64_t predicted = 0; predicted < classes; ++predicted) {
      const auto divisor = static_cast<double>(Divisor(label, predicted));
      entries.push_back(divisor == 0 ? 0 : static_cast<double>(counts().At(label, predicted)) / divisor);
    }
  }
  return Tensor::From(entries, {classes, classes});
}

absl::Status ConfusionMatrix::Merge(const Metric& other) {
  const auto* same = dynamic_cast<const ConfusionMatrix*>(&other);
  if (same == nullptr || same->options_ != options_) return internal::CannotMerge(*this, other);
  return MergeCounts(*same);
}

std::string ConfusionMatrix::Description() const {
  return absl::StrCat("ConfusionMatrix(normalize = ", Name(options_.normalize),
                      ", ignore_label = ", internal::OrNone(options_.ignore_label), ")");
}

}  // namespace mpc
