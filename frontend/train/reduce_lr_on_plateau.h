// A learning rate that falls where a run no longer improves.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "frontend/train/callback.h"
#include "frontend/train/monitor.h"

namespace mpc {

/// MindSpore's options and defaults.
struct ReduceLROnPlateauOptions {
  std::string monitor = "eval_loss";  ///< what to watch; see EarlyStoppingOptions
  double factor = 0.1;                ///< what a rate is multiplied by, in (0, 1)
  /// Epochs without improvement after which rates fall; epochs without evaluation do not count. 0 is the same as 1.
  std::int64_t patience = 10;
  bool verbose = false;
  std::string mode = "auto";       ///< see EarlyStoppingOptions
  double min_delta = 1e-4;         ///< a smaller improvement counts for none; >= 0
  std::int64_t cooldown = 0;       ///< epochs after a fall that are not counted
  double min_lr = 0;               ///< no rate falls below it; >= 0
  std::ostream* stream = nullptr;  ///< where `verbose` writes; std::cout if null
};

/// Multiplies learning rates by `factor` where the monitored value has stopped improving, at the end of an epoch. It
/// acts on every group of every optimizer of the Model. (MindSpore's takes no groups.) The next step uses the new
/// rate, without a recompile.
///
/// A resumed run goes on with the rates of the checkpoint. Where a callback of this monitor and mode saved there, it
/// goes on with that one's best value and counts of epochs too. Errors end the run when it begins: an unknown monitor,
/// a bad option, a rate that a schedule computes. The optimizers of a step that does not name them are known once it
/// has run. A schedule among them, or that there are none, ends the run after an epoch.
class ReduceLROnPlateau : public Callback {
 public:
  explicit ReduceLROnPlateau(ReduceLROnPlateauOptions options = {});

  std::string StateName() const override { return monitor_.StateName(); }
  std::string SaveState() const override;
  absl::Status LoadState(const std::string& state) override;
  void OnTrainBegin(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;

 private:
  absl::Status Check() const;
  /// Errors: a rate that cannot fall; where the step was `traced`, that there is none.
  absl::Status CheckRates(const RunContext& context, bool traced) const;
  absl::Status Reduce(RunContext& context) const;

  ReduceLROnPlateauOptions options_;
  internal::Monitor monitor_;
  std::int64_t wait_ = 0;
  std::int64_t cooldown_left_ = 0;
};

}  // namespace mpc
