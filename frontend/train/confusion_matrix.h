// The confusion matrix of a classification.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frontend/train/confusion_counts.h"
#include "frontend/train/metric.h"

namespace mpc {

/// What the entries of a confusion matrix are divided by. MindSpore's words are no_norm, target, prediction and all.
enum class ConfusionNormalization : std::uint8_t {
  kNone,        ///< by nothing: they are counts
  kTarget,      ///< by the number of positions with the row's label
  kPrediction,  ///< by the number of positions with the column's prediction
  kAll,         ///< by the number of positions
};

struct ConfusionMatrixOptions {
  ConfusionNormalization normalize = ConfusionNormalization::kNone;
  std::optional<std::int64_t> ignore_label;  ///< positions with this label are left out; it may lie outside the classes
  friend bool operator==(const ConfusionMatrixOptions&, const ConfusionMatrixOptions&) = default;
};

/// Counts how often each label met each predicted class. The number of classes comes from the predictions; MindSpore
/// asks for it.
///
/// Predictions: floating [N, C, d1, ...], logits with the classes on axis 1. The class of a position is that of its
/// largest logit. Of equal logits the one with the lower index counts. Or floating [N] or [N, 1]: one logit a row,
/// which predicts class 1 if it is greater than 0, else class 0. MindSpore has a threshold for probabilities instead.
/// Labels: integers [N, d1, ...] or [N, 1, d1, ...] in [0, C), or one-hot like the predictions. For one logit a row: N
/// labels 0 or 1 of any type. For [N, C] labels may be N integers in any shape. A position with a NaN logit counts for
/// its label and has no prediction. It stands in no column.
///
/// Merge of parts is exact. Errors (INVALID_ARGUMENT): other shapes, both specs named; a label out of range with its
/// row; another number of classes than before. A one-hot row needs one largest entry, above 0.
class ConfusionMatrix : public internal::CountingMetric {
 public:
  explicit ConfusionMatrix(const ConfusionMatrixOptions& options = {})
      : CountingMetric(options.ignore_label), options_(options) {}
  /// The share of positions on the diagonal, which is the accuracy.
  absl::StatusOr<double> Eval() const override;
  /// f64 [C, C]: rows are labels, columns are predictions. An entry that is divided by 0 is 0. Errors
  /// (FAILED_PRECONDITION): no position was counted.
  absl::StatusOr<Tensor> Matrix() const;
  absl::Status Merge(const Metric& other) override;
  std::string Description() const override;

 private:
  std::int64_t Divisor(std::int64_t label, std::int64_t predicted) const;

  ConfusionMatrixOptions options_;
};

}  // namespace mpc
