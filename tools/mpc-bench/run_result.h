// What one run of mpc or of a peer found, and how it travels between processes.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/mpc-bench/resident_memory.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

struct RunResult {
  std::vector<double> step_seconds;  ///< one a measured step
  std::string version;               ///< "mpc 0.1.0", "PyTorch 2.4.0"
  std::string settings;              ///< what matters for the time and is not in the row's title; may be empty
  double first_loss = 0;             ///< loss of the first step: shows that two programs compute the same
  double final_loss = 0;             ///< loss of the last step: shows that the step trains
  std::vector<double> losses;        ///< on the CPU: one a measured step
  std::size_t steps_before = 0;      ///< steps before the measured ones, the first step and those that warm up
  /// mpc: arena, state, staging as planned before the first step; a peer on a GPU: its allocator's maximum; 0: not
  /// known.
  std::size_t peak_bytes = 0;
  std::optional<ResidentGrowth> resident;  ///< growth of host memory
  /// What ranks send each other in a step, without the rest of it; empty where there is one rank.
  std::vector<double> reduction_seconds;
  std::size_t reduction_bytes = 0;  ///< bytes of that in one rank
  double first_step_seconds = 0;    ///< from Compile(), or a peer's first call, to the end of the first step
  std::vector<std::pair<std::string, double>> compile_seconds;  ///< mpc's phases: trace, passes, lowering, ...
};

Json RunToJson(const RunResult& result);
/// What RunToJson, or a peer's script, writes. Errors: another text, quoted.
absl::StatusOr<RunResult> RunFromJson(const std::string& text);

/// The runs of ranks that trained together as one run. A step takes as long as its slowest rank. A loss is the mean
/// over ranks, which have equal numbers of rows. Memory is that of all ranks. Compile times are those of rank 0. There
/// is at least one rank. Errors: ranks that measured different numbers of steps.
absl::StatusOr<RunResult> MergeRanks(const std::vector<RunResult>& ranks);

}  // namespace mpc::tools
