// Lock files on the disk.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/report/precision_lock.h"

namespace mpc::compiler {

/// OK where the lock file at \p path holds the precision of \p present. Errors name the path. FAILED_PRECONDITION comes
/// with the difference. INVALID_ARGUMENT: a file that is no lock, or one of another network, step, device, level, low
/// type or loss scale. UNIMPLEMENTED: another version of locks. DATA_LOSS: a damaged file. NOT_FOUND: no file.
absl::Status CheckPrecisionLock(const std::string &path, const PrecisionLock &present);

/// Whether the file was written: one that holds this lock already stays as it is. Where there is no file at \p path, or
/// no regular one, the lock is written there. With \p update it also takes the place of another lock of the same
/// network and level. A damaged lock or one of another version is then replaced, too. The file is written beside \p
/// path, synced and renamed. Errors: those of CheckPrecisionLock; what writing reports.
absl::StatusOr<bool> WritePrecisionLock(const std::string &path, const PrecisionLock &present, bool update);

} // namespace mpc::compiler
