// The flags of processes that train together.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "mpc/distributed.h"
#include "tools/mpc-train/options.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {

/// --distributed, and those that say how processes exchange what they compute.
void AddProcessFlags(FlagSet& flags, TrainOptions& options);

/// Errors: a flag that says how processes exchange values, where there is one process.
absl::Status CheckProcessFlags(const FlagSet& flags, const TrainOptions& options);

/// What a process without --distributed has to say where a launcher has started several: each of them trains alone and
/// writes the same files. Empty elsewhere, and in ranks but the first.
std::string NoteOfProcessesAlone(const TrainOptions& options);

/// What the flags ask of distributed::Init.
distributed::Transport TransportOf(const TrainOptions& options);

/// What the flags ask of SetAutoParallelContext, with kDataParallel.
AutoParallelOptions ParallelOptionsOf(const TrainOptions& options);

}  // namespace mpc::tools
