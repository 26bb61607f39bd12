// One run: the compiled training step, timed.
#pragma once

#include "absl/status/statusor.h"
#include "tools/mpc-bench/options.h"
#include "tools/mpc-bench/run_result.h"

namespace mpc::tools {

/// Compiles the step of `options.model` and runs it on made-up batches in turn. On the CPU a sample is the time of a
/// step. On a device that runs ahead it is the time between the ends of two launches, shared equally by the steps of
/// the launch. The host looks for an end when it has started the next launch. The warm-up ends early after a third of
/// `options.seconds_limit()`. With `options.ranks` this process is one of them (RankGroup), and takes its block of each
/// batch. Sets the seed and the context of the process. Errors: those of PrepareBenchModel, and of
/// compiling and running the step.
absl::StatusOr<RunResult> MeasureSteps(const BenchOptions& options);

}  // namespace mpc::tools
