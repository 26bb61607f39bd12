// Paddle's gradient scaler.
#pragma once

#include <cstdint>

#include "frontend/amp/explicit_scaler.h"

namespace mpc::amp {

struct AmpScalerOptions {
  bool enable = true;
  double init_loss_scaling = 32768.0;
  double incr_ratio = 2.0;
  double decr_ratio = 0.5;
  std::int64_t incr_every_n_steps = 1000;
  std::int64_t decr_every_n_nan_or_inf = 1;  ///< consecutive steps with an overflow before the scale shrinks
  bool use_dynamic_loss_scaling = true;      ///< false: the scale is constant; steps with an overflow are still skipped
};

/// Paddle's AmpScaler:
///
///     Tensor scaled = scaler.Scale(loss);
///     ops::Backward(scaled, optimizer.parameters());
///     scaler.Minimize(optimizer, scaled);
///
/// Setters and LoadStateDict return an error for a value that the constructor would reject; nothing changes then. A
/// disabled scaler scales nothing and skips nothing; its setters change nothing.
class AmpScaler : public ExplicitScaler {
 public:
  explicit AmpScaler(const AmpScalerOptions& options = {});

  /// Unscales `gradients`, unless Unscale has been called for this optimizer. Updates the parameters if the gradients
  /// and the loss are finite. The scale moves when the step ends: once a step, however many optimizers it minimizes.
  bool Minimize(nn::Optimizer& optimizer, const std::vector<Tensor>& gradients);
  /// The same with the gradients of `scaled_loss`. Takes them from an earlier call of ops::Backward, or calls it.
  bool Minimize(nn::Optimizer& optimizer, const Tensor& scaled_loss);

  bool IsEnable() const { return enabled(); }
  bool IsUseDynamicLossScaling() const;
  double GetInitLossScaling() const;
  double GetIncrRatio() const;
  double GetDecrRatio() const;
  std::int64_t GetIncrEveryNSteps() const;
  std::int64_t GetDecrEveryNNanOrInf() const;
  /// Sets the current scale as well.
  absl::Status SetInitLossScaling(double init_loss_scaling);
  absl::Status SetIncrRatio(double incr_ratio);
  absl::Status SetDecrRatio(double decr_ratio);
  absl::Status SetIncrEveryNSteps(std::int64_t incr_every_n_steps);
  absl::Status SetDecrEveryNNanOrInf(std::int64_t decr_every_n_nan_or_inf);

  /// scale, incr_ratio, decr_ratio, incr_every_n_steps, decr_every_n_nan_or_inf, incr_count, decr_count,
  /// use_dynamic_loss_scaling; empty if the scaler is disabled.
  ScalerState StateDict() const;
  /// Errors: an empty state, keys that are missing or unknown, values out of range. A disabled scaler takes any state
  /// and stays as it is.
  absl::Status LoadStateDict(const ScalerState& state);
};

}  // namespace mpc::amp
