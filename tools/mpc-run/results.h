// What a run says at its end.
#pragma once

#include <optional>
#include <string>

#include "tools/mpc-run/session.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

struct RunResults {
  std::optional<TrainResult> train;
  std::optional<PredictResult> predict;
  bool load_only = false;  ///< the training step was loaded, and that is all
};

/// A few lines for people.
std::string FormatResults(const Session& session, const RunResults& results);

/// Keys of every run: file, metadata (an object), device, arch, batch, load_seconds, memory_bytes {arena, state, other,
/// total}. Training, and loading alone, add graph, steps_per_launch, nodes_per_step and choices (an object: those in
/// force). Training adds steps, losses (one a step; null where not finite), timed_steps, step_seconds {median, p5, p95}
/// and steps_per_second. It also adds skipped_steps (null without a scaler) and loss_scale. A test adds test_rows,
/// test_right and test_accuracy (null without labels), and test_seconds.
Json ResultsToJson(const RunOptions& options, const Session& session, const RunResults& results);

/// How long the instructions of `program` took: {"instructions": [{index, kernel, scope, median_us, p95_us}],
/// "sum_us"}, in the order of the Program. What was not measured (a view, a kernel that ran together with another one)
/// is left out.
Json TimesToJson(const runtime::Program& program, const TrainResult& train);

}  // namespace mpc::tools
