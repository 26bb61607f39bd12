// Shares of positions whose label is among the largest logits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/train/metric.h"

namespace mpc {

struct TopKOptions {
  std::optional<std::int64_t> ignore_label;  ///< positions with this label are left out; it may lie outside the classes
  friend bool operator==(const TopKOptions&, const TopKOptions&) = default;
};

/// Share of positions whose label is among the k largest logits. A position with a NaN logit counts as wrong. Of equal
/// logits the one with the lower index is larger.
///
/// Predictions: floating [N, C, d1, ...], the classes on axis 1, as CrossEntropyLoss takes them. Labels: integers [N,
/// d1, ...] or [N, 1, d1, ...] in [0, C), or one-hot like the predictions, of any type (the largest entry is the
/// label). For predictions [N, C] they may be N integers in any shape. Floating [N] or [N, 1] are one logit a row:
/// class 1 where it is above 0, else class 0. Then labels are N values 0 or 1 of any type, and k is 1.
///
/// Positions that a loss ignores count here unless `ignore_label` names their label: {.ignore_label = -100} goes with
/// the default of CrossEntropyLoss.
///
/// Errors (INVALID_ARGUMENT): other shapes, both specs named; a label out of range with its row; k > C. A one-hot row
/// needs one largest entry, above 0. Errors of Eval (FAILED_PRECONDITION): no position was counted. Merge of parts is
/// exact.
class TopK : public Metric {
 public:
  explicit TopK(std::int64_t k, const TopKOptions& options = {}) : k_(k), options_(options) {}
  void Clear() override;
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) override;
  absl::StatusOr<double> Eval() const override;
  absl::Status Merge(const Metric& other) override;
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status MergeState(std::string_view state) override;
  std::string Description() const override;

 private:
  std::int64_t k_;
  TopKOptions options_;
  std::int64_t right_ = 0;
  std::int64_t rows_ = 0;  ///< positions that were counted
};

/// TopK(1).
class Accuracy : public TopK {
 public:
  explicit Accuracy(const TopKOptions& options = {}) : TopK(1, options) {}
};

}  // namespace mpc
