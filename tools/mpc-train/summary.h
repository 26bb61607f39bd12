// The results of a run as JSON.
#pragma once

#include "tools/mpc-train/training.h"
#include "tools/support/json_file.h"

namespace mpc::tools {

/// Keys: test_accuracy, test_loss (null for synthetic data), train_loss (an epoch each), epochs (an object each),
/// steps, steps_per_second (without compiling and testing; null without a step), skipped_steps, loss_scale,
/// compile_seconds (total, then by phase; a pass is "passes/<name>"), peak_bytes (state, temporaries and constants of
/// the largest Program), options (as used, defaults included). Of text test_loss is that of the validation and
/// test_accuracy null; validations (step, train_loss, loss) and the sample stand beside them.
Json MakeSummary(const TrainOptions& options, const Training& training);

}  // namespace mpc::tools
