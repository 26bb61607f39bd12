// Mean absolute and mean squared error of a regression.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "frontend/train/metric.h"

namespace mpc {

struct ErrorMetricOptions {
  /// Divides by elements in place of rows, as nn::MSELoss does. MindSpore has no such option.
  bool per_element = false;
  friend bool operator==(const ErrorMetricOptions&, const ErrorMetricOptions&) = default;
};

/// Base of sums over elements that are divided by rows, as MindSpore's are: extent 0 of the predictions.
///
/// Predictions: floating [N, ...]. Labels: of any type, N rows of as many elements. A NaN makes the value NaN. Sums are
/// f64, and so is what Merge adds. Errors (INVALID_ARGUMENT): other shapes, both specs named.
class ErrorMetric : public Metric {
 public:
  void Clear() override { sum_ = count_ = 0; }
  absl::Status Update(const Tensor& loss, const Tensor& predictions, const Tensor& labels) override;
  absl::StatusOr<double> Eval() const override;
  absl::Status Merge(const Metric& other) override;
  absl::StatusOr<std::string> SaveState() const override;
  absl::Status MergeState(std::string_view state) override;
  bool SmallerIsBetter() const override { return true; }
  std::string Description() const override;

 protected:
  ErrorMetric(std::string name, const ErrorMetricOptions& options) : name_(std::move(name)), options_(options) {}
  /// What an element adds whose prediction and label differ by `difference`.
  virtual double ErrorOf(double difference) const = 0;

 private:
  std::string name_;
  ErrorMetricOptions options_;
  double sum_ = 0;
  double count_ = 0;  ///< rows, or elements
};

/// Mean absolute error.
class MAE : public ErrorMetric {
 public:
  explicit MAE(const ErrorMetricOptions& options = {}) : ErrorMetric("MAE", options) {}

 private:
  double ErrorOf(double difference) const override;
};

/// Mean squared error.
class MSE : public ErrorMetric {
 public:
  explicit MSE(const ErrorMetricOptions& options = {}) : ErrorMetric("MSE", options) {}

 private:
  double ErrorOf(double difference) const override;
};

}  // namespace mpc
