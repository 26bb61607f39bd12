// `mpc-train --emit`: the Programs of a network as a file for mpc-run.
#pragma once

#include <ostream>

#include "absl/status/status.h"
#include "tools/mpc-train/options.h"

namespace mpc::tools {

/// Compiles the Programs of `options.model` for batches of `options.batch_size` and writes them to `options.emit_path`,
/// with a line about them on `progress` (null: none). Nothing is trained and no data is read. Errors: a place that
/// cannot be written; an existing file without `options.force`; a device or architecture that this build does not
/// compile for. What compiling reports is an error too. On an error no file is left, and one that was there is as it
/// was.
absl::Status EmitPrograms(const TrainOptions& options, std::ostream* progress);

}  // namespace mpc::tools
