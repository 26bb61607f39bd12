// One run: the compiled training step, timed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/mpc-bench/options.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

/// What a run of mpc or of a peer found.
struct RunResult {
  std::vector<double> step_seconds;  ///< one a measured step
  std::string version;               ///< "mpc 0.1.0", "PyTorch 2.4.0"
  double final_loss = 0;             ///< shows that the step trains
};

/// Compiles the step of `options.model` with Momentum and runs it on eight made-up batches in turn.
absl::StatusOr<RunResult> MeasureSteps(const BenchOptions& options);

Json RunToJson(const RunResult& result);
/// Errors: a text that RunToJson does not write, quoted.
absl::StatusOr<RunResult> RunFromJson(const std::string& text);

}  // namespace mpc::tools
