// Percentiles of runs, and how mpc compares with its peers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/mpc-bench/contest.h"
#include "tools/support/percentiles.h"

namespace mpc::tools {

Json ToJson(const Percentiles& values);

/// Step time of the peer over mpc's in each pair of runs (medians); above 1 mpc is faster.
std::vector<double> RatiosByRun(const Contestant& mpc, const Contestant& peer);

/// All measured steps of its runs, in seconds.
std::vector<double> AllSteps(const Contestant& contestant);

/// Seconds to the end of the first step. `cold` is that of the first run, which finds empty caches. `cached` is the
/// median of the other runs, which find its code; 0 if there was one run.
struct FirstStep {
  double cold = 0;
  double cached = 0;
};
FirstStep FirstStepOf(const Contestant& contestant);

/// "f32", "O2 bf16", "O2 f16, loss scale none".
std::string ModeName(const BenchOptions& row);

/// "gpt2 with tokens 256 and width 384": the network with its sizes that are not as published.
std::string NetworkName(const BenchOptions& row);

/// The name that the processor gives itself.
std::string ProcessorName();

/// Each round's median step of the ranks, over the sum of a rank's step alone and of what ranks send each other. Empty
/// where the row has one rank, or "mpc-rank-alone" is not among `contestants`.
std::vector<double> OverheadsByRun(const BenchOptions& row, const std::vector<Contestant>& contestants);

struct LossDistance {
  double largest = 0;
  std::size_t steps = 0;  ///< that were compared, at least one
};

/// How far the losses of the same step are apart in the last runs of both, of steps that both measured. A step counts
/// from the first of its run, since runs may warm up for other numbers of steps. Empty where there is none.
std::optional<LossDistance> LossDifference(const Contestant& mpc, const Contestant& peer);

/// A table in milliseconds, a row for each run and one over all steps. Behind it stand rates, memory and compile time
/// of each program, and the ratios. Of ranks there is what they send each other, and the overhead.
std::string FormatTable(const BenchOptions& row, const std::vector<Contestant>& contestants);

/// An object for each peer, one where there is none. Keys are `model`, `batch`, `mode`, and `mpc`, `peer` (seconds a
/// step) and `ratio`, each with `median`, `p5`, `p95`. Memory and compile time are in `mpc` and `peer`. With ranks
/// there are `ranks`, `overhead`, and in `mpc` `reduction` (seconds) with its `bytes`. Of peers of PyTorch there is
/// `loss_difference`, over `steps`.
std::vector<Json> RowsToJson(const BenchOptions& row, const std::vector<Contestant>& contestants);

}  // namespace mpc::tools
