// Files that are either complete or absent: checkpoints and arrays survive a crash while they are written.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mpc::runtime {

/// Writes `chunks`, one after the other, to a new file beside `path`, flushes it to the disk and renames it to `path`.
/// A reader sees the old content or the new one, never a part. The folder must exist; a symbolic link at `path` is
/// replaced, not followed. Errors: the system's, with the path; `path` is then unchanged and nothing is left beside it.
absl::Status WriteFileAtomically(const std::string& path, absl::Span<const absl::Span<const std::uint8_t>> chunks);

}  // namespace mpc::runtime
