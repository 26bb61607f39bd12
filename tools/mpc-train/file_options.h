// Checks of flags of mpc-train beside each other: files, and what the precision reads.
#pragma once

#include "absl/status/status.h"
#include "tools/mpc-train/options.h"

namespace mpc::tools {

/// Errors: a precision lock that is written and checked in one run; two flags that name one file, of which one is
/// written. --save may name the file of --load or --resume.
absl::Status CheckFiles(const TrainOptions& options);

/// Adds the Cells that lose values in the profile of --amp-profile to the list `deny_add`. The level is known. Errors:
/// those of amp::ResolveOptions, CheckScaleLimits and LossyCellsOfProfile; a profile for a level that computes all in
/// f32.
absl::Status FinishPrecision(TrainOptions& options);

}  // namespace mpc::tools
