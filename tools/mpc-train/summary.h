// The results of a run as JSON.
#pragma once

#include "tools/mpc-train/training.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

/// Keys of the results: test_accuracy, test_loss (null for synthetic data), train_loss (an epoch each) and epochs (an
/// object each). Keys of the run: steps, steps_per_second (without compiling and testing; null without a step),
/// skipped_steps and loss_scale. Keys of compiling: compile_seconds (total, then by phase; a pass is "passes/<name>")
/// and peak_bytes (state, temporaries and constants of the largest Program). programs says how many were compiled, one
/// for each batch shape and use. The key options holds the options as used, defaults included. For text, test_loss is
/// that of the validation and test_accuracy is null; validations (step, train_loss, loss) and the sample stand beside
/// them.
Json MakeSummary(const TrainOptions& options, const Training& training);

}  // namespace mpc::tools
