// What loggers of a run share: which steps and epochs they write.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "frontend/train/callback.h"

namespace mpc {

/// Base of callbacks that write the numbers of a run to a file. They are "loss", "loss_scale", "skipped_steps" and the
/// results of evaluation ("eval_loss", ...). Where the Model records them, "gradient_norm" and "learning_rate" are
/// there too.
///
/// Numbers are written after every epoch, and after every `log_steps` steps if that is not 0. The end of an epoch that
/// adds nothing to what its last step has written is left out. Numbers are the records of the step: no step waits for a
/// logger on a device that runs ahead. A file that cannot be written ends the run with an error.
class RunLogger : public Callback {
 public:
  void OnTrainBegin(RunContext& context) override;
  void OnStepEnd(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;
  void OnTrainEnd(RunContext& context) override;

 protected:
  using Scalars = std::vector<std::pair<std::string, double>>;

  /// `name` is the logger's, for errors; `log_steps` >= 0.
  RunLogger(std::string name, std::int64_t log_steps) : name_(std::move(name)), log_steps_(log_steps) {}

  /// Before the first number of a run.
  virtual absl::Status Open(const RunContext& context) = 0;
  /// The numbers of the step that has ended, or of the epoch.
  virtual absl::Status Write(const RunContext& context, const Scalars& scalars) = 0;
  /// After the last one.
  virtual absl::Status Close() = 0;

 private:
  void Log(RunContext& context);

  std::string name_;
  std::int64_t log_steps_;
  std::int64_t last_step_ = 0;
  std::int64_t last_logged_ = -1;  ///< global step
};

}  // namespace mpc
