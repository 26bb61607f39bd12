// Shares of rows whose label is among the largest logits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "frontend/train/metric.h"

namespace mpc {

/// Share of rows whose label is among the k largest logits. A row with a NaN logit counts as wrong. Of equal logits the
/// one with the lower index is larger.
///
/// Predictions: floating [N, C]. Labels: integers [N] or [N, 1] in [0, C), or one-hot [N, C] of any type (the largest
/// entry is the label). Floating [N] or [N, 1] are one logit a row: class 1 where it is above 0, else class 0. Then
/// labels are N values 0 or 1 of any type, and k is 1.
///
/// Errors (INVALID_ARGUMENT): other shapes, both specs named; a label out of range with its row; k > C. A one-hot row
/// needs one largest entry, above 0. Merge of parts is exact.
class TopK : public Metric {
 public:
  explicit TopK(std::int64_t k) : k_(k) {}
  void Clear() override;
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) override;
  absl::StatusOr<double> Eval() const override;
  absl::Status Merge(const Metric& other) override;
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status MergeState(std::string_view state) override;
  std::string Description() const override;

 private:
  std::int64_t k_;
  std::int64_t right_ = 0;
  std::int64_t rows_ = 0;
};

/// TopK(1).
class Accuracy : public TopK {
 public:
  Accuracy() : TopK(1) {}
};

}  // namespace mpc
