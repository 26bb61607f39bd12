// The mean loss and the perplexity.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "frontend/train/metric.h"

namespace mpc {

/// Mean loss over rows. The mean loss of each batch is weighted by the batch's rows: extent 0 of the predictions, or 1
/// without predictions. Merge adds sums of f64.
class Loss : public Metric {
 public:
  void Clear() override;
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) override;
  absl::StatusOr<double> Eval() const override;
  absl::Status Merge(const Metric& other) override;
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status MergeState(std::string_view state) override;
  bool SmallerIsBetter() const override { return true; }
  std::string Description() const override { return "Loss"; }

 private:
  double sum_ = 0;
  double rows_ = 0;
};

struct PerplexityOptions {
  std::optional<std::int64_t> ignore_label;  ///< rows with this label are left out; it may lie outside the classes
  friend bool operator==(const PerplexityOptions&, const PerplexityOptions&) = default;
};

/// exp of the mean cross-entropy of softmax(logits) against the labels, computed in f64. MindSpore's Perplexity takes
/// probabilities; here predictions are logits, as of every metric.
///
/// Predictions: floating [..., C], the classes on the last axis. Labels: integers, one for each row of C logits, in any
/// shape. A NaN logit makes the value NaN. A label whose logit is -infinity makes it infinite. Merge adds sums of f64.
/// Errors (INVALID_ARGUMENT): other shapes, both specs named; a label out of range with its row, counted over all rows
/// of C logits. Errors of Eval (FAILED_PRECONDITION): no label was counted.
class Perplexity : public Metric {
 public:
  explicit Perplexity(const PerplexityOptions& options = {}) : options_(options) {}
  void Clear() override;
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) override;
  absl::StatusOr<double> Eval() const override;
  absl::Status Merge(const Metric& other) override;
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status MergeState(std::string_view state) override;
  bool SmallerIsBetter() const override { return true; }
  std::string Description() const override;

 private:
  PerplexityOptions options_;
  double sum_ = 0;         ///< sum of the cross-entropies
  std::int64_t rows_ = 0;  ///< rows that were counted
};

}  // namespace mpc
