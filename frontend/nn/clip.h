// Gradient clipping. It belongs on unscaled gradients: clipping scaled ones is an error of the graph.
#pragma once

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "frontend/graph/tensor.h"

namespace mpc {

namespace ops {

/// The square root of the sum of squares of all elements, which is f64. The result is f32, rank 0, infinite beyond
/// f32's range. Takes at least one gradient.
Tensor GlobalNorm(const std::vector<Tensor>& gradients);

struct ClippedGradients {
  std::vector<Tensor> gradients;  ///< f32
  Tensor norm;                    ///< before clipping: that of GlobalNorm
};
/// Multiplies every gradient by min(1, max_norm / (norm + 1e-6)), as PyTorch's clip_grad_norm_ does. Norm and factor
/// are f64, so that finite gradients of any size are clipped. `max_norm` > 0, in f32 too. A gradient that is not finite
/// makes all of them NaN.
ClippedGradients ClipByGlobalNorm(const std::vector<Tensor>& gradients, double max_norm);

/// Every element limited to [-limit, limit]; `limit` > 0.
std::vector<Tensor> ClipByValue(const std::vector<Tensor>& gradients, double limit);
/// Every element limited to [minimum, maximum].
std::vector<Tensor> ClipByValue(const std::vector<Tensor>& gradients, double minimum, double maximum);

}  // namespace ops

namespace nn {

/// What a training step does to gradients between unscaling and the optimizer. If both are given, values are clipped
/// first.
struct GradientClip {
  std::optional<double> global_norm;  ///< > 0
  std::optional<double> value;        ///< > 0

  bool given() const { return global_norm.has_value() || value.has_value(); }
  /// Errors: the field, its value, its range.
  absl::Status Validate() const;
  /// While tracing: clips, and reports "gradient_norm" (before clipping) where the step wants it.
  std::vector<Tensor> Apply(std::vector<Tensor> gradients) const;
};

}  // namespace nn
}  // namespace mpc
