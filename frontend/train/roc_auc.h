// The area under the receiver operating characteristic.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/train/metric.h"

namespace mpc {

/// The probability that a row of class 1 has a larger score than a row of class 0, both drawn at random. Equal scores
/// count one half. This is the area under the ROC curve. MindSpore computes it in two steps, `ROC` and `auc`.
///
/// Predictions: floating [N] or [N, 1], the score of class 1, or logits [N, 2], whose difference is the score. Labels:
/// N labels 0 or 1 of any type, for [N, 2] integers [N] or [N, 1] or one-hot rows. A row with a NaN logit, or with two
/// equal infinite ones, loses against every row. The scores of all rows are kept, 4 bytes a row, until Clear.
///
/// Merge of parts is exact. Errors (INVALID_ARGUMENT): other shapes, both specs named; a label that is neither 0 nor 1,
/// with its row. A one-hot row needs one largest entry, above 0. Errors of Eval (FAILED_PRECONDITION): rows of both
/// classes are needed.
class RocAuc : public Metric {
 public:
  void Clear() override;
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) override;
  absl::StatusOr<double> Eval() const override;
  absl::Status Merge(const Metric& other) override;
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status MergeState(std::string_view state) override;
  std::string Description() const override { return "RocAuc"; }

 private:
  std::vector<float> positive_;  ///< scores of the rows of class 1
  std::vector<float> negative_;  ///< scores of the rows of class 0
};

}  // namespace mpc
