// The mean intersection over union of a segmentation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frontend/train/confusion_counts.h"
#include "frontend/train/metric.h"

namespace mpc {

struct MeanIoUOptions {
  std::optional<std::int64_t> ignore_label;  ///< positions with this label are left out, as with 255 for borders
  friend bool operator==(const MeanIoUOptions&, const MeanIoUOptions&) = default;
};

/// The mean over classes of TP / (TP + FP + FN). A class that is neither a label nor a prediction is left out of it.
/// MindSpore has no such metric; the name and the mean are Keras's. Inputs and errors are those of ConfusionMatrix:
/// images have predictions [N, C, H, W] and labels [N, H, W]. A position with a NaN logit is a false negative of its
/// label. Merge of parts is exact. Errors of Eval (FAILED_PRECONDITION): no position was counted.
class MeanIoU : public internal::CountingMetric {
 public:
  explicit MeanIoU(const MeanIoUOptions& options = {}) : CountingMetric(options.ignore_label), options_(options) {}
  absl::StatusOr<double> Eval() const override;
  absl::Status Merge(const Metric& other) override;
  std::string Description() const override;
  /// The quotient of each class; none for a class that never occurred. Errors as of Eval.
  absl::StatusOr<std::vector<std::optional<double>>> PerClass() const;

 private:
  MeanIoUOptions options_;
};

}  // namespace mpc
