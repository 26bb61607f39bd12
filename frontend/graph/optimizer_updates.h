// Which gradients a step takes, and what its optimizers do with them. Not part of the public API.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "frontend/graph/parameter.h"
#include "frontend/graph/tensor.h"

namespace mpc::internal {

/// Each Parameter is updated by one optimizer at most. In a step with an optimizer each gradient has one that takes it.
/// In a step without one, something reads a gradient.
class OptimizerUpdates {
 public:
  /// `divided_scale` is the loss scale that the wrap of this step applies and that optimizers divide out.
  explicit OptimizerUpdates(std::optional<double> divided_scale = std::nullopt) : divided_scale_(divided_scale) {}

  const std::optional<double>& divided_scale() const { return divided_scale_; }
  /// Notes that gradients by `parameters` were asked for.
  void AddDifferentiated(absl::Span<const Parameter> parameters);
  /// Notes gradients that a backward pass of the step gives.
  void AddGradients(absl::Span<const Tensor> gradients);
  const std::vector<Tensor>& gradients() const { return gradients_; }
  /// Notes that a differentiated function reads `parameter`.
  void AddRead(const Parameter& parameter) { read_.push_back(parameter); }
  /// False if an optimizer has already updated `parameter` in this step.
  bool Claim(const Parameter& parameter);
  /// True if gradients by `parameter` were asked for and no differentiated function reads it: nothing trains it.
  bool IsUnused(const Parameter& parameter) const;
  /// Notes a group of an optimizer, with the state that its learning rate is; undefined where a schedule computes it.
  void AddRate(std::string group, Parameter rate) { rates_.emplace_back(std::move(group), std::move(rate)); }
  const std::vector<std::pair<std::string, Parameter>>& rates() const { return rates_; }
  /// True where an optimizer updates a Parameter.
  bool any_claimed() const { return !claimed_.empty(); }
  /// At the end of a step with an optimizer, or whose gradients nothing reads. Errors (INVALID_ARGUMENT): a gradient
  /// that no optimizer takes.
  absl::Status CheckAllTaken() const;

 private:
  std::optional<double> divided_scale_;
  std::vector<Parameter> differentiated_;
  std::vector<Tensor> gradients_;
  std::vector<Parameter> read_;
  std::vector<Parameter> claimed_;
  std::vector<std::pair<std::string, Parameter>> rates_;
};

}  // namespace mpc::internal
