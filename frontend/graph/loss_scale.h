// Loss-scale managers and the state machine's configuration and state.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "frontend/graph/parameter.h"
#include "runtime/scaler_field.h"

namespace mpc {

/// What the loss-scale wrap of a training step does. One state machine serves every front; see docs/amp.md.
struct LossScaleConfig {
  enum class Mode { kNone, kStatic, kDynamic };
  Mode mode = Mode::kNone;
  double init = 1.0;
  double growth = 2.0;
  double backoff = 0.5;
  double minimum = 1.0;
  double maximum = 0x1p126;
  std::int64_t growth_interval = 2000;  ///< finite steps before the scale grows
  std::int64_t backoff_interval = 1;    ///< consecutive overflows before it shrinks
  bool skip = true;                     ///< skip the update of a step that is not finite
  bool unscale = true;                  ///< false: the optimizer's own loss_scale divides

  std::string_view mode_name() const;
  /// Errors: the field, its value, its range.
  absl::Status Validate() const;
};

/// The scaler's fields as state: "scaler.scale", "scaler.good", ... Configuration is state too, so that it can change
/// between steps without a recompile. The second scaler of a step is "scaler2".
class LossScaler {
 public:
  explicit LossScaler(const LossScaleConfig& config);
  /// The configuration at construction: mode, skip and unscale, which a step is compiled with.
  const LossScaleConfig& config() const { return config_; }
  /// The whole configuration at construction, which Configure and checkpoints do not change.
  const LossScaleConfig& made_with() const { return made_with_; }
  /// The state entries in the order of ScalerField.
  const std::vector<Parameter>& state() const { return state_; }
  // These read the state, which waits for the device. If the device has failed, the scale is NaN and the counters are
  // -1.
  double scale() const { return Field(ScalerField::kScale); }
  std::int64_t good_steps() const { return Count(ScalerField::kGood); }  ///< finite steps since the scale last moved
  std::int64_t bad_steps() const { return Count(ScalerField::kBad); }    ///< consecutive overflows towards a backoff
  std::int64_t skipped_steps() const { return Count(ScalerField::kSkipped); }
  std::int64_t consecutive_skips() const { return Count(ScalerField::kConsecutive); }

  /// The configuration as the state says it now.
  LossScaleConfig current() const;
  /// Changes limits, factors, intervals, `init` and whether the scale moves; the next step sees it, without a
  /// recompile. The current scale stays. Errors: those of Validate, and then nothing changes.
  absl::Status Configure(const LossScaleConfig& config);
  /// Sets the current scale. Errors: outside [2^-126, 2^126].
  absl::Status SetScale(double scale);
  static absl::Status CheckScale(double scale);
  /// True for whole numbers in [0, 2^31), which counters and intervals are.
  static bool IsCount(double value);
  /// Sets the counters. Errors: one is not in [0, 2^31).
  absl::Status SetCounters(std::int64_t good, std::int64_t bad);
  /// Sets the prefix of the names of the state entries, by the scaler's place in a step: "scaler", "scaler2", ...
  void SetPrefix(const std::string& prefix);

 private:
  double Field(ScalerField field) const;
  std::int64_t Count(ScalerField field) const;
  LossScaleConfig config_;
  LossScaleConfig made_with_;
  std::vector<Parameter> state_;
};

/// Base of MindSpore's loss-scale managers.
class LossScaleManager {
 public:
  virtual ~LossScaleManager() = default;
  virtual LossScaleConfig config() const = 0;
};

struct FixedLossScaleOptions {
  double loss_scale = 128.0;
  /// False: updates anyway, and the optimizer's `loss_scale` must be the same number, by which it divides. At 1 any
  /// optimizer without another number does.
  bool drop_overflow_update = true;
};

class FixedLossScaleManager : public LossScaleManager {
 public:
  explicit FixedLossScaleManager(const FixedLossScaleOptions& options = {}) : options_(options) {}
  LossScaleConfig config() const override;

 private:
  FixedLossScaleOptions options_;
};

struct DynamicLossScaleOptions {
  double init_loss_scale = 0x1p24;
  double scale_factor = 2.0;         ///< growth; the backoff is its reciprocal
  std::int64_t scale_window = 2000;  ///< finite steps before the scale grows
};

/// Arguments are named because their order misleads: growth > 16 or init < 2^8 is warned about on std::cerr.
class DynamicLossScaleManager : public LossScaleManager {
 public:
  explicit DynamicLossScaleManager(const DynamicLossScaleOptions& options = {});
  LossScaleConfig config() const override;

 private:
  DynamicLossScaleOptions options_;
};

/// `loss_scale_manager` of a Model: left out (the level's default), nullptr (no scaling), or a manager.
class LossScaleChoice {
 public:
  LossScaleChoice() = default;
  LossScaleChoice(std::nullptr_t) : config_(LossScaleConfig{}) {}                  // NOLINT
  LossScaleChoice(const LossScaleManager& manager) : config_(manager.config()) {}  // NOLINT
  LossScaleChoice(const std::shared_ptr<LossScaleManager>& manager)                // NOLINT
      : config_(manager == nullptr ? LossScaleConfig{} : manager->config()) {}
  LossScaleChoice(const LossScaleConfig& config) : config_(config) {}  // NOLINT
  /// Empty: the level's default.
  const std::optional<LossScaleConfig>& config() const { return config_; }

 private:
  std::optional<LossScaleConfig> config_;
};

}  // namespace mpc
