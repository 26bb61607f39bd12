// What happens around the epochs of a run: learning rates, tests, results, progress.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpc/train.h"
#include "tools/mpc-train/training.h"

namespace mpc::tools {

/// The mean of the losses that are finite.
class MeanLoss {
 public:
  void Add(double loss);
  /// NaN without a loss.
  double value() const;

 private:
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// Measures each epoch, tests after it, reports it and sets the next learning rate. On text it validates in its midst
/// too, as TrainOptions::validate_every asks.
class Training::EpochRecorder : public Callback {
 public:
  /// `progress` and `plot`, which takes the tests' results: null: none.
  EpochRecorder(Training& training, std::ostream* progress, TrainingPlot* plot)
      : training_(training), progress_(progress), plot_(plot) {}

  /// The first error of a test or of a learning rate, which ends the run.
  const absl::Status& status() const { return status_; }

  bool RunsOnEveryRank() const override { return true; }
  bool NeedsState(const RunContext& context) const override { return ValidatesAt(context.global_step + 1); }
  void OnEpochBegin(RunContext& context) override;
  void OnStepEnd(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;

 private:
  bool ValidatesAt(std::int64_t step) const;
  absl::StatusOr<TestResult> Test(RunContext& context);
  void Check(const absl::Status& status, RunContext& context);

  Training& training_;
  std::ostream* progress_;
  TrainingPlot* plot_;
  absl::Status status_;
  MeanLoss epoch_loss_;
  MeanLoss loss_since_validation_;
  std::int64_t last_step_ = 0, steps_before_ = 0;  ///< global steps: the last one, those before the epoch
  std::int64_t batches_before_ = 0;                ///< those of the epoch that an earlier run has trained on
  double compiled_before_ = 0;
  double tested_before_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace mpc::tools
