// Precision, recall and F1 of a classification.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "frontend/train/confusion_counts.h"
#include "frontend/train/metric.h"

namespace mpc {

/// How the quotients of several classes become one value.
enum class Average : std::uint8_t {
  kMacro,   ///< the mean of all classes' quotients, those of classes that never occur included
  kMicro,   ///< the sum of the numerators by the sum of the denominators
  kBinary,  ///< the quotient of class 1 of two
};

struct ClassScoreOptions {
  Average average = Average::kMacro;         ///< MindSpore's `average=True`; PerClass() is its `average=False`
  double zero_division = 0;                  ///< the value of 0 / 0; no counterpart in MindSpore, where it is 0
  std::optional<std::int64_t> ignore_label;  ///< positions with this label are left out; it may lie outside the classes
  friend bool operator==(const ClassScoreOptions&, const ClassScoreOptions&) = default;
};

/// Base of metrics that are a quotient for each class. Inputs and errors are those of ConfusionMatrix. A position with
/// a NaN logit is a false negative of its label and a false positive of no class. Merge of parts is exact. MindSpore's
/// `eval_type` "multilabel" has no counterpart here. Errors of Eval (FAILED_PRECONDITION): no position was counted.
/// Errors (INVALID_ARGUMENT): Average::kBinary with other than two classes.
class ClassScore : public internal::CountingMetric {
 public:
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) override;
  absl::StatusOr<double> Eval() const override;
  absl::Status Merge(const Metric& other) override;
  std::string Description() const override;
  /// The quotient of each class. Errors as of Eval.
  absl::StatusOr<std::vector<double>> PerClass() const;

 protected:
  ClassScore(std::string name, const ClassScoreOptions& options)
      : CountingMetric(options.ignore_label), name_(std::move(name)), options_(options) {}
  /// Numerator and denominator of class `c`.
  virtual std::pair<std::int64_t, std::int64_t> Quotient(std::int64_t c) const = 0;

 private:
  double Divide(std::pair<std::int64_t, std::int64_t> quotient) const;

  std::string name_;
  ClassScoreOptions options_;
};

/// Of the positions that are predicted as a class, the share with its label.
class Precision : public ClassScore {
 public:
  explicit Precision(const ClassScoreOptions& options = {}) : ClassScore("Precision", options) {}

 private:
  std::pair<std::int64_t, std::int64_t> Quotient(std::int64_t c) const override;
};

/// Of the positions with a class as label, the share that is predicted as it.
class Recall : public ClassScore {
 public:
  explicit Recall(const ClassScoreOptions& options = {}) : ClassScore("Recall", options) {}

 private:
  std::pair<std::int64_t, std::int64_t> Quotient(std::int64_t c) const override;
};

/// The harmonic mean of precision and recall: 2 TP / (2 TP + FP + FN). The macro average is the mean of the classes'
/// F1, as MindSpore's, and not the F1 of mean precision and mean recall.
class F1 : public ClassScore {
 public:
  explicit F1(const ClassScoreOptions& options = {}) : ClassScore("F1", options) {}

 private:
  std::pair<std::int64_t, std::int64_t> Quotient(std::int64_t c) const override;
};

}  // namespace mpc
