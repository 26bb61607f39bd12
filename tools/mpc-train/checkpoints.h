// Where mpc-train saves its training and what it resumes from.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mpc/train.h"
#include "tools/mpc-train/options.h"

namespace mpc::tools {

/// Fails before the work that would be saved. Errors: nothing can be written where --save says.
absl::Status CheckSavePath(const TrainOptions& options);

/// Saves as --save, --save-every and --keep say; null without --save. A file is written at the end, and every so many
/// steps. A folder gets a file every so many steps, else every epoch, and one at the end.
std::unique_ptr<Callback> MakeSaver(const TrainOptions& options);

/// Loads what --resume asks for and returns a line that says so; empty without --resume. What differs from the saved
/// run is reported on std::cerr. A plain --resume without an earlier checkpoint begins anew. Errors: no file where one
/// was named; one that does not fit.
absl::StatusOr<std::string> Resume(const TrainOptions& options, Model& model);

/// `status` of a run, with the flag that begins a new run from a checkpoint where Model names a call.
absl::Status InFlags(const absl::Status& status);

}  // namespace mpc::tools
