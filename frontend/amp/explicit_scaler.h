// What the gradient scalers that a training step calls itself have in common.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "frontend/graph/identity.h"
#include "frontend/graph/loss_scale.h"
#include "frontend/graph/tensor.h"
#include "frontend/nn/optimizer.h"

namespace mpc::internal {
class Trace;
}  // namespace mpc::internal

namespace mpc::amp {

/// A scaler's state by the keys of the framework it comes from; booleans are 0 and 1.
using ScalerState = std::map<std::string, double>;

/// Base of AmpScaler and GradScaler. In the Construct of a training step (a Cell derived from nn::TrainingStep or
/// nn::TrainOneStepCell) its methods are operations of the step:
///
///     Tensor scaled = scaler.Scale(loss);
///     std::vector<Tensor> gradients = ops::Backward(scaled, optimizer.parameters());
///     scaler.Step(optimizer, gradients);
///     scaler.Update();
///
/// Getters and setters act between steps on the scaler's state. The next step uses the new state, without a recompile.
/// Copies share their state. Outside a training step, Scale returns a tensor that carries the error; the other methods
/// keep it in `status`.
class ExplicitScaler {
 public:
  virtual ~ExplicitScaler() = default;
  /// The first error: constructor arguments out of range, or a use outside a training step.
  const absl::Status& status() const { return *status_; }

  /// loss * scale, f32; the loss itself if the scaler is disabled. The loss may have more than one element.
  Tensor Scale(const Tensor& loss);
  /// Divides `gradients` (in the order of `optimizer.parameters()`) by the scale, returns them in f32, and checks that
  /// they are finite. May be called once for each optimizer between two updates. The program may change the result, for
  /// example clip it, before Step.
  std::vector<Tensor> Unscale(nn::Optimizer& optimizer, const std::vector<Tensor>& gradients);
  /// Updates the parameters if the gradients and the loss are finite. `gradients` are scaled, or unscaled after Unscale
  /// for this optimizer. May be called once for each optimizer between two updates. Returns true, for ops::Depend.
  bool Step(nn::Optimizer& optimizer, const std::vector<Tensor>& gradients);
  /// The same with the gradients of `scaled_loss`. Takes them from an earlier call of ops::Backward, or calls it.
  bool Step(nn::Optimizer& optimizer, const Tensor& scaled_loss);
  /// Moves the scale after the steps of all optimizers. Returns true, for ops::Depend.
  bool Update();

  /// Scale and counters after the last step.
  const LossScaler& scaler() const { return *scaler_; }

 protected:
  /// A step that is not finite is skipped in any case: `config.skip` is true.
  ExplicitScaler(std::string name, bool enabled, const LossScaleConfig& config);
  bool enabled() const { return enabled_; }
  struct Counters {
    std::int64_t good = 0;
    std::int64_t bad = 0;
  };
  /// Implements the setters: changes the configuration, then the current scale and the counters if they are given.
  /// Checks everything before it writes anything. A disabled scaler stays as it is.
  absl::Status Change(const std::function<void(LossScaleConfig&)>& change, std::optional<double> scale = {},
                      std::optional<Counters> counters = {});
  /// The gradients of `scaled_loss` by the optimizer's parameters.
  std::vector<Tensor> GradientsOf(nn::Optimizer& optimizer, const Tensor& scaled_loss);
  /// Calls Step, and updates the scale when the step ends.
  bool StepAndUpdate(nn::Optimizer& optimizer, const std::vector<Tensor>& gradients);
  /// Errors (INVALID_ARGUMENT): `state` is empty; keys are missing or unknown, all of which are named.
  absl::Status CheckKeys(const ScalerState& state, const std::vector<std::string>& keys) const;
  /// Errors (INVALID_ARGUMENT): values of `keys` that are no whole numbers in [0, 2^31), all of which are named.
  absl::Status CheckCounts(const ScalerState& state, const std::vector<std::string>& keys) const;

 private:
  mpc::internal::Trace* BeginUse(const char* method);

  std::string name_;
  bool enabled_;
  std::shared_ptr<LossScaler> scaler_;
  std::shared_ptr<absl::Status> status_;
  mpc::internal::Identity identity_;  ///< what compiled steps know this scaler by
};

}  // namespace mpc::amp
