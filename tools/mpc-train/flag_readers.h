// Which flags of mpc-train are read where: data and networks have flags of their own, and so have training, a test
// without training, and --emit.
#pragma once

#include "absl/status/status.h"
#include "tools/mpc-train/options.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {

/// Tells `flags`, in which all are declared, who reads them.
void LimitFlags(FlagSet& flags);

/// Errors: a flag that was given and that nothing of the run reads, with what it contradicts. Model, data, epochs and
/// what begins as it is given are set in `options`; defaults that follow from others need not be.
absl::Status CheckFlagsAreRead(const FlagSet& flags, const TrainOptions& options);

}  // namespace mpc::tools
