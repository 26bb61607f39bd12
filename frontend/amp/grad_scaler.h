// PyTorch's gradient scaler.
#pragma once

#include <cstdint>

#include "frontend/amp/explicit_scaler.h"

namespace mpc::amp {

struct GradScalerOptions {
  double init_scale = 65536.0;
  double growth_factor = 2.0;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;  ///< finite steps before the scale grows
  bool enabled = true;
};

/// torch.amp.GradScaler: call Scale, Unscale and Step for each optimizer, then Update once. An optimizer's update is
/// skipped if its own gradients are not finite. The scale shrinks if the gradients of any optimizer are not finite.
/// Setters and LoadStateDict return an error for a value that the constructor would reject; nothing changes then.
class GradScaler : public ExplicitScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {});

  bool IsEnabled() const { return enabled(); }
  /// 1 if the scaler is disabled.
  double GetScale() const { return scaler().scale(); }
  double GetGrowthFactor() const { return scaler().current().growth; }
  double GetBackoffFactor() const { return scaler().current().backoff; }
  std::int64_t GetGrowthInterval() const { return scaler().current().growth_interval; }
  /// What torch's update(new_scale) does: the next step uses this scale.
  absl::Status SetScale(double scale);
  absl::Status SetGrowthFactor(double growth_factor);
  absl::Status SetBackoffFactor(double backoff_factor);
  absl::Status SetGrowthInterval(std::int64_t growth_interval);

  /// scale, growth_factor, backoff_factor, growth_interval, _growth_tracker; empty if the scaler is disabled.
  ScalerState StateDict() const;
  /// Errors: an empty state, keys that are missing or unknown, values out of range. A disabled scaler takes any state
  /// and stays as it is.
  absl::Status LoadStateDict(const ScalerState& state);
};

}  // namespace mpc::amp
