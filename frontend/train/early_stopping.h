// Stopping a run that no longer improves.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "frontend/train/callback.h"
#include "frontend/train/monitor.h"

namespace mpc {

/// MindSpore's options and defaults.
struct EarlyStoppingOptions {
  /// What to watch: "loss" is the training loss of the epoch's last step. Others are results of Model::Fit:
  /// "eval_loss", "eval_accuracy", and a metric's own name.
  std::string monitor = "eval_loss";
  double min_delta = 0;  ///< a smaller improvement counts for none; >= 0
  /// Epochs without improvement after which the run ends; epochs without evaluation do not count. 0 is the same as 1.
  /// (MindSpore's 0 ends the run after one epoch, whatever it measured.)
  std::int64_t patience = 0;
  bool verbose = false;
  /// "min": less is better. "max": more is. "auto": less for the training loss, where the metric says so
  /// (Metric::SmallerIsBetter), and under MindSpore's names of losses, errors and distances; else more.
  std::string mode = "auto";
  std::optional<double> baseline;     ///< an improvement that is not better than this counts for none
  bool restore_best_weights = false;  ///< when it stops the run: the network gets its weights of the best epoch back
  std::ostream* stream = nullptr;     ///< where `verbose` writes; std::cout if null
};

/// Ends a run whose monitored value has stopped improving, at the end of an epoch:
///
///     EarlyStopping stopping({.monitor = "eval_accuracy", .patience = 3, .restore_best_weights = true});
///     absl::Status trained = model.Fit(100, train_set, valid_set, {}, {LossMonitor(), stopping});
///
/// Weights are the network's Parameters and running statistics; a copy of the best ones is kept on the host. Optimizer
/// state is not restored. A resumed run goes on with the best value and the count of the checkpoint, whose callback had
/// this monitor and mode. With `restore_best_weights` it begins without them, since a checkpoint has no best weights.
/// Errors end the run when it begins: an unknown monitor, a bad option.
class EarlyStopping : public Callback {
 public:
  explicit EarlyStopping(EarlyStoppingOptions options = {});

  /// The epoch after which the last run was stopped; 0: it was not.
  std::int64_t stopped_epoch() const { return stopped_epoch_; }
  /// The best value of the last run, and its epoch; empty and 0 before the first.
  const std::optional<double>& best() const { return monitor_.best(); }
  std::int64_t best_epoch() const { return best_epoch_; }

  std::string StateName() const override { return options_.restore_best_weights ? "" : monitor_.StateName(); }
  std::string SaveState() const override;
  absl::Status LoadState(const std::string& state) override;
  void OnTrainBegin(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;
  void OnTrainEnd(RunContext& context) override;

 private:
  /// Counts a value. True: the run is to end.
  bool Count(double value, RunContext& context);
  void Restore(RunContext& context);

  EarlyStoppingOptions options_;
  internal::Monitor monitor_;
  std::int64_t wait_ = 0;
  std::int64_t stopped_epoch_ = 0;
  std::int64_t best_epoch_ = 0;
  TrainedModel::Weights best_weights_;
};

}  // namespace mpc
