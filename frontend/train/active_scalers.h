// The loss scalers that act in a Model's training. Not part of the public API.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/amp/scaler_history.h"
#include "frontend/graph/loss_scale.h"
#include "frontend/graph/step_results.h"
#include "frontend/graph/step_trace.h"
#include "frontend/nn/train_step.h"
#include "frontend/train/run_context.h"

namespace mpc::internal {

/// Which scalers act: those that a step of the user's own holds or calls, else the Model's. And what they have done. It
/// tells their state behind the step whose results are read, also where the device is ahead of the host. It knows
/// whether the last step overflowed.
class ActiveScalers {
 public:
  /// A scaler with what its records are called: "finite" + suffix, ...
  struct Scaling {
    const LossScaler* scaler;
    std::string suffix;
  };
  /// A scaler's state after the step whose results are read.
  struct State {
    double scale = 1;
    std::int64_t skipped = 0;
    std::int64_t consecutive = 0;
  };
  using Writes = std::map<const LossScaler*, amp::internal::ScalerHistory::Writes>;

  // Which scalers there are.
  /// The Model's own scaling, before it has a scaler.
  void Configure(const LossScaleConfig& config) { config_ = config; }
  /// Takes a scaler of amp::Initialize, with its configuration, for the Model's own.
  void Share(const std::shared_ptr<LossScaler>& scaler);
  /// Makes the Model's own scalers, one for each of `num_losses`, where it scales and shares none.
  void Create(std::int64_t num_losses);
  /// `step` is the user's. Where it is a TrainOneStepWithLossScaleCell, its scaler acts.
  void UseStep(const nn::TrainingStep& step);
  /// Learns the scalers that a step of the user's own calls from a trace of it; none: what was known stands.
  void NoteCalled(const StepFacts& facts);
  /// Learns from a compiled step of the user's own whether a scaler acts in it.
  void NoteWrap(const StepFacts& facts) { step_is_scaled_ = facts.wrapped || !facts.scalers.empty(); }

  /// The Model's own scaling.
  const LossScaleConfig& config() const { return config_; }
  /// The Model's own scaler of the first loss, or null.
  LossScaler* own() const { return own_.empty() ? nullptr : own_.front().get(); }
  /// The state of the Model's own scalers.
  std::vector<Parameter> OwnState() const;

  /// The scalers that act. Empty: none.
  std::vector<const LossScaler*> all() const;
  /// The scale of scaler number `loss_id`; 1 where there is none, or no scaler acts in the step.
  double scale(std::int64_t loss_id) const;
  /// The scale of the scaler that acts; of several that of the one with most skips in a row.
  double scale() const;
  /// The skipped steps of all scalers.
  std::int64_t skipped_steps() const;

  // The results of a step.
  /// The scalers that have records among `results`.
  std::vector<Scaling> Of(const StepResults& results) const;
  /// The record "first_bad" of `scaler`; empty where the step has none.
  std::optional<double> FirstBad(const StepResults& results, const LossScaler& scaler) const;
  State StateAfterStep(const LossScaler& scaler) const;
  /// Tells `context` the scale of the first scaler and the skipped steps of all, as they are now.
  void TellScaling(RunContext& context) const;

  // Steps of a device that is ahead of the host: the host follows each scaler's state.
  /// Begins to follow the scalers that are not followed. Errors: those of reading their state.
  absl::Status Follow();
  /// To be called before a launch. Returns what the host has written since the last one.
  absl::StatusOr<Writes> TakeWrites();
  /// To be called after a launch.
  void NoteLaunch();
  /// Follows the next step, behind `writes`. `completes`: it is no micro-step before the last.
  void FollowStep(const Writes& writes, const StepResults& results, bool completes);
  void StopFollowing() { histories_.clear(); }

  /// Whether the last step that was completed had a gradient that is not finite.
  bool in_overflow_run() const { return in_overflow_run_; }
  void NoteOverflow(bool overflow) { in_overflow_run_ = overflow; }

 private:
  /// The scaler that acts; of several the one with most skips in a row.
  const LossScaler* worst() const;

  LossScaleConfig config_;
  std::vector<std::shared_ptr<LossScaler>> own_;                    ///< by loss
  const nn::TrainOneStepWithLossScaleCell* scaled_step_ = nullptr;  ///< a step of the user's own, which scales
  std::vector<StepFacts::Scaler> called_;                           ///< what a step of the user's own calls
  bool step_is_scaled_ = true;  ///< false: a step of the user's own was compiled, and no scaler acts in it
  bool in_overflow_run_ = false;
  /// While Train runs a device that is ahead of the host.
  std::map<const LossScaler*, std::unique_ptr<amp::internal::ScalerHistory>> histories_;
};

/// The parameter whose gradient is the first that is not finite in a step's check: number `index`. `suffix` is that of
/// the check's records. `optimizers` update in the step.
std::string GradientName(const StepResults& results, const std::string& suffix, std::int64_t index,
                         const std::vector<nn::Optimizer*>& optimizers);

}  // namespace mpc::internal
