// What Fit evaluates between epochs. Not part of the public API.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/data/dataset.h"
#include "frontend/train/fit_options.h"
#include "frontend/train/metric.h"

namespace mpc::internal {

/// A data set, the metrics over it and the epochs that it is evaluated after.
class Validation {
 public:
  /// `given`: the Model's metrics. The loss joins them where it is missing.
  Validation(const data::Dataset& dataset, const MetricList& given, FitOptions options);

  const data::Dataset& dataset() const { return dataset_; }
  const MetricList& metrics() const { return metrics_; }
  const ValidFrequency& frequency() const { return options_.valid_frequency; }
  /// Whether epoch number `epoch`, from 1, is followed by an evaluation.
  bool Follows(std::int64_t epoch) const { return options_.valid_frequency.Includes(epoch); }

  /// The names of the results, sorted: "eval_accuracy".
  std::vector<std::string> names() const;
  /// Those of which less is better, as their metrics say.
  std::vector<std::string> smaller_is_better() const;
  /// The values of the metrics by the names of the results.
  static std::map<std::string, double> Named(const std::map<std::string, double>& values);

 private:
  const data::Dataset& dataset_;
  FitOptions options_;
  MetricList metrics_;
};

}  // namespace mpc::internal
