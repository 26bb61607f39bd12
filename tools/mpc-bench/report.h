// Percentiles of runs, and how mpc compares with its peer.
#pragma once

#include <string>
#include <vector>

#include "tools/mpc-bench/measure.h"
#include "tools/support/percentiles.h"

namespace mpc::tools {

/// The runs of one program under its name.
struct Contestant {
  std::string name;
  std::vector<RunResult> runs;
};

/// Step time of the peer over mpc's in each pair of runs (medians); above 1 mpc is faster.
std::vector<double> RatiosByRun(const Contestant& mpc, const Contestant& peer);

/// What was measured, where: "lenet5, batch 32, O0 (f32), 2 threads, 5 runs of 200 steps; <processor>".
std::string Title(const BenchOptions& options);

/// A table in milliseconds, a row for each run and one over all steps, and the ratio if there is a peer.
std::string FormatTable(const BenchOptions& options, const std::vector<Contestant>& contestants);
Json TableToJson(const BenchOptions& options, const std::vector<Contestant>& contestants);

}  // namespace mpc::tools
