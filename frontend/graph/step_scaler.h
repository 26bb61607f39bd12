// Loss scaling in a step that is being traced: what every explicit front (AmpScaler, GradScaler, amp::ScaleLoss) is
// made of. Not part of the public API.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/graph/loss_scale.h"
#include "frontend/graph/tensor_node.h"
#include "frontend/graph/trace.h"

namespace mpc::amp::internal {

using mpc::internal::SameValue;
using mpc::internal::Trace;

/// One scaler in one step. Its operations: mpc.scale_loss, mpc.all_finite, mpc.unscale, mpc.merge_checks,
/// mpc.update_loss_scale. A scaler without scaling (mode none) emits none of them.
class StepScaler {
 public:
  StepScaler(Trace& trace, std::shared_ptr<LossScaler> scaler);

  const std::shared_ptr<LossScaler>& scaler() const { return scaler_; }
  bool active() const { return scaler_->config().mode != LossScaleConfig::Mode::kNone; }

  /// loss * scale, f32.
  Tensor ScaleLoss(const Tensor& loss);
  /// Whether these scaled gradients and the losses behind them are finite: a rank-0 bool. `names` are the names of the
  /// gradients' parameters.
  Tensor Check(const std::vector<Tensor>& gradients, const std::vector<Tensor>& losses, std::vector<std::string> names);
  /// gradient / scale, f32.
  Tensor Unscale(const Tensor& gradient);
  /// Every loss that this scaler has scaled since its last update.
  const std::vector<Tensor>& losses() const { return losses_; }
  bool checked() const { return !checks_.empty(); }
  /// Updates the state by the checks since the last update. What follows in the step sees the new scale.
  void Update();
  /// Asks for an update when the step ends: there is one, however often it is asked for.
  void UpdateAtEnd() { update_at_end_ = true; }
  bool updates_at_end() const { return update_at_end_; }
  /// How often the state moves in the step.
  int updates() const { return updates_; }
  /// The names of the parameters of each check of the step, across updates.
  const std::vector<std::vector<std::string>>& checked_names() const { return checked_names_; }
  /// Reports the step under this scaler: records "finite", "first_bad" and "loss_scale" with `suffix`; where there were
  /// several checks also "check<suffix>.0", "check<suffix>.1", ...: their first_bad.
  void Record(const std::string& suffix) const;

 private:
  const Tensor& Scale();

  Trace& trace_;
  std::shared_ptr<LossScaler> scaler_;
  Tensor scale_;        ///< scale of the losses since the last update
  Tensor first_scale_;  ///< scale that the step began with; undefined if nothing was scaled or checked
  std::vector<Tensor> losses_;
  std::vector<Tensor> checks_;  ///< first_bad since the last update
  std::vector<Tensor> finite_;
  std::vector<Tensor> first_bad_;
  std::vector<std::vector<std::string>> checked_names_;
  bool update_at_end_ = false;
  int updates_ = 0;
};

/// A loss that a scaler has multiplied.
struct ScaledLoss {
  Tensor scaled;
  Tensor loss;
  StepScaler* scaler;
};

/// The arguments and the results of one call of ops::Backward.
struct BackwardPass {
  Tensor loss;
  std::vector<Parameter> parameters;
  std::vector<Tensor> gradients;
};

/// The loss scaling of a step: kept by its trace (Trace::locals).
class StepScaling {
 public:
  /// The one of `trace`.
  static StepScaling& InTrace(Trace& trace);

  StepScaler& ScalerOf(const std::shared_ptr<LossScaler>& scaler);
  Tensor Scale(StepScaler& scaler, const Tensor& loss);
  /// The scaled loss that `tensor` is, or null.
  const ScaledLoss* FindScaled(const Tensor& tensor) const;
  /// The losses of `scaler` that `gradients` come from, found in the recorded backward passes. If none is found, as
  /// after arithmetic on the gradients, every loss of the scaler.
  std::vector<Tensor> LossesOf(const StepScaler& scaler, const std::vector<Tensor>& gradients) const;

  /// The scaler by which `gradient`, as a backward pass has given it, is scaled; null if it is not, or after
  /// arithmetic.
  const StepScaler* ScalerBehind(const Tensor& gradient) const;

  void Note(BackwardPass pass) { passes_.push_back(std::move(pass)); }
  /// The gradient of `parameter` from the backward pass of `loss`; undefined if there was none.
  Tensor FindGradient(const Tensor& loss, const Parameter& parameter) const;

  /// The scalers that have checked gradients, in order of first use. Their records have the suffix "" if there is one,
  /// else "0", "1", ...
  std::vector<const StepScaler*> checking() const;

 private:
  void Finish(Trace& trace);

  Trace* trace_ = nullptr;
  std::vector<std::unique_ptr<StepScaler>> scalers_;
  std::vector<ScaledLoss> scaled_;
  std::vector<BackwardPass> passes_;
};

/// The running trace, if it is one of a training step. Otherwise null, and the misuse is an error: of the trace if
/// there is one, else of `status`. `caller` names the function: "AmpScaler::Scale".
Trace* TrainingTrace(const char* caller, absl::Status* status);

/// The condition on which an update of a step happens: all of `flags`; undefined if there are none.
Tensor AllOf(Trace& trace, const std::vector<Tensor>& flags);

}  // namespace mpc::amp::internal
