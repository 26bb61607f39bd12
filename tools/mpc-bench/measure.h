// One run: the compiled training step, timed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/mpc-bench/options.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

/// What a run of mpc or of a peer found.
struct RunResult {
  std::vector<double> step_seconds;  ///< one a measured step
  std::string version;               ///< "mpc 0.1.0", "PyTorch 2.4.0"
  std::string settings;              ///< what matters for the time and is not in the row's title; may be empty
  double final_loss = 0;             ///< shows that the step trains
  std::size_t peak_bytes = 0;        ///< of the device: mpc's plan, what the peer allocated; 0: not known
  /// Seconds from the network to the first step, by phase: mpc's trace, passes, lowering, ...; a peer's first step.
  std::vector<std::pair<std::string, double>> compile_seconds;
};

/// Compiles the step of `options.model` and runs it on made-up batches in turn. On the CPU a sample is the time of a
/// step; on a device that runs ahead the time between the ends of two launches, as the host sees them while it starts
/// the next one, shared equally by the steps of the launch.
absl::StatusOr<RunResult> MeasureSteps(const BenchOptions& options);

Json RunToJson(const RunResult& result);
/// Errors: a text that RunToJson does not write, quoted.
absl::StatusOr<RunResult> RunFromJson(const std::string& text);

}  // namespace mpc::tools
