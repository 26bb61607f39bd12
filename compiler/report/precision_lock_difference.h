// Compares the precision of a step with a lock.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "compiler/report/precision_lock.h"

namespace mpc::compiler {

/// OK where both locks are of one network, step, device, level, low type and loss scale. Errors (INVALID_ARGUMENT):
/// what \p locked is of and what \p present is of. Parameters may differ: a network changes.
absl::Status CheckLockSubject(const PrecisionLock &locked, const PrecisionLock &present);

/// What changes from \p locked to \p present: operations by Cell, with types, bytes and reasons; casts by Cell; totals.
/// Empty where nothing does. Where an assignment of an earlier run decided in \p present, reasons are not compared.
std::string PrecisionLockDifference(const PrecisionLock &locked, const PrecisionLock &present);

} // namespace mpc::compiler
