// amp::ScaleLoss in a step that is being traced: which gradients are scaled, by which scaler, for which optimizers. Not
// part of the public API.
#pragma once

#include <vector>

#include "frontend/graph/step_scaler.h"

namespace mpc::nn {
class Optimizer;
}  // namespace mpc::nn

namespace mpc::amp::internal {

/// One call of amp::ScaleLoss.
struct LossUse {
  Tensor scaled;
  Tensor loss;
  StepScaler* scaler;
  std::vector<const nn::Optimizer*> optimizers;
  bool delay;
  Tensor finite;  ///< result of the check; undefined before its backward pass, and where that is delayed
};

/// A gradient that waits, scaled, for a backward pass that unscales it.
struct DelayedGradient {
  Parameter parameter;
  Tensor gradient;
  const LossUse* use;
};

/// The uses of amp::ScaleLoss in one trace, which keeps them (Trace::locals).
class ScaledBackward {
 public:
  void Add(LossUse use) { uses_.push_back(std::make_unique<LossUse>(std::move(use))); }
  LossUse* Find(const Tensor& scaled);
  /// Keeps the gradients of a delayed backward pass.
  void Delay(const LossUse& use, const std::vector<Parameter>& parameters, const std::vector<Tensor>& gradients);
  /// Unscales and checks the gradients of `use`, plus those that were delayed for the same optimizers.
  std::vector<Tensor> Unscale(Trace& trace, LossUse& use, const std::vector<Parameter>& parameters,
                              std::vector<Tensor> gradients);
  bool IsDelayed(const nn::Optimizer& optimizer) const;
  /// The checks that the update of `optimizer` depends on.
  std::vector<Tensor> Flags(const nn::Optimizer& optimizer) const;

 private:
  std::vector<std::unique_ptr<LossUse>> uses_;
  std::vector<DelayedGradient> delayed_;
};

}  // namespace mpc::amp::internal
