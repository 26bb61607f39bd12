// Precisions between the fastest and the most exact one, from the command line.
#pragma once

#include <ostream>

#include "absl/status/status.h"
#include "mpc/train.h"
#include "tools/mpc-train/options.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {

/// The flags of the frontier and of a chosen precision.
void AddFrontierFlags(FlagSet& flags, TrainOptions& options);

/// Sets level auto where --precision-frontier or --precision needs it. Errors: another level; options that contradict
/// each other, by name.
absl::Status CheckFrontier(TrainOptions& options);

/// Runs the frontier of `model` on the first batches of `rows`, prints its table on `out`, and writes the precision
/// that is chosen. Errors: those of Model::FindPrecisionFrontier; no point keeps the limits; what writing reports.
absl::Status RunFrontier(const TrainOptions& options, const data::Dataset& rows, Model& model, std::ostream& out);

/// Gives `model` the precision of --precision, if any. Errors, with the path: those of the file and of
/// Model::UsePrecision.
absl::Status TakePrecision(const TrainOptions& options, const data::Dataset& rows, Model& model);

}  // namespace mpc::tools
