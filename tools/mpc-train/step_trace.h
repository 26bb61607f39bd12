// Some steps of a training run as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "mpc/train.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

/// Two rows. "instructions": each step, its parts (forward, backward, update), their instructions with kernel, Cell,
/// types and bytes. "host": each step, in it the wait for the batch, the copy of the inputs, the step, and reading the
/// records. Times are in microseconds from the first traced step on. A traced step leaves the bits of any other.
class StepTrace : public Callback {
 public:
  /// Steps number `first` to `last` of the callback's life, from 1.
  StepTrace(std::string model, std::int64_t first, std::int64_t last);

  void OnStepBegin(RunContext& context) override { ++begun_; }
  bool WantsTiming(const RunContext& context) const override { return begun_ >= first_ && begun_ <= last_; }
  void OnStepTimed(const StepTiming& timing) override;

  /// Writes {"traceEvents": [...]}, complete or not at all. Errors: the run ended before the first step; those of
  /// writing the file.
  absl::Status Save(const std::string& path) const;

 private:
  void AddEvent(const std::string& name, const std::string& category, int row, StepTiming::Time begin,
                StepTiming::Time end, Json arguments);

  std::string model_;
  std::int64_t first_, last_;
  std::int64_t begun_ = 0;
  std::int64_t traced_ = 0;
  StepTiming::Time origin_;
  Json events_ = Json::array();
};

/// Saves the trace of a run. One that was stopped may not have come to the steps: that is then a warning on std::cerr.
absl::Status SaveTrace(const StepTrace& trace, const std::string& path, bool stopped);

/// The part of a training step that each instruction belongs to: "forward", "backward" or "update". The update is that
/// of parameters, statistics and loss scales, with the check that it depends on.
std::vector<std::string> PartsOfStep(const runtime::Program& program);

}  // namespace mpc::tools
