// The runs of one row: mpc and its peers, alternating.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/mpc-bench/measure.h"

namespace mpc::tools {

/// The runs of one program under its name.
struct Contestant {
  std::string name;
  std::vector<RunResult> runs;
};

/// mpc first, then `row.peers`. Each run is a process of its own, so that all start equally cold. The programs take
/// turns, so that what else the machine does falls on all of them. `row.busy` processes run beside them. Peers begin
/// from mpc's initial weights and take its batches. Caches of compiled code are empty before the first run and are kept
/// for the others.
absl::StatusOr<std::vector<Contestant>> MeasureRow(const BenchOptions& row);

}  // namespace mpc::tools
