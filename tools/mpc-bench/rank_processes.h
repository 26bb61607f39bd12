// Starting the processes that train together.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/mpc-bench/run_result.h"

namespace mpc::tools {

/// Runs `command` as ranks 0 to `ranks` - 1 of this machine, with the variables of torchrun, which mpc and PyTorch
/// read. Returns what each rank wrote. Rank 0's port is free at the time of the call. Errors: no port; those of
/// RunTogether.
absl::StatusOr<std::vector<std::string>> RunRanks(const std::vector<std::string>& command, std::int64_t ranks);

/// Runs `command`, which prints a RunResult, in one process, or as `ranks` of them, whose runs become one (MergeRanks).
/// Errors: those of RunRanks, RunFromJson and MergeRanks.
absl::StatusOr<RunResult> MeasureRanks(const std::vector<std::string>& command, std::int64_t ranks);

}  // namespace mpc::tools
