// Files that are either complete or absent: checkpoints and arrays survive a crash while they are written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mpc::runtime {

struct FileWriting {
  /// Flushes the file and its name to the disk. Without it a crash of the machine may leave a part of the content.
  bool sync = true;
  /// Permissions of the file, before the process's umask. Without them a new file has 0666. A file that is written
  /// again then keeps its own, without the bits that change the user or the group.
  std::optional<unsigned> permissions = {};
};

/// Writes `chunks`, one after the other, to `path`. Where `path` is a regular file or missing, the content goes to a
/// new file beside it. That file is flushed to the disk and renamed to `path`. A reader sees the old content or the new
/// one, never a part. A symbolic link stays: its target is written in this way. A device or a pipe is opened and
/// written straight. An open descriptor of this process (/dev/stdout, /dev/fd/N) is written where it stands. In a
/// folder that may be written but not read, the new name is not flushed.
///
/// The folder must exist. Errors: `path` is a folder (INVALID_ARGUMENT), or a file that may not be written
/// (PERMISSION_DENIED); the system's, with the path. A regular file is then unchanged and nothing is left beside it.
absl::Status WriteFileAtomically(const std::string& path, absl::Span<const absl::Span<const std::uint8_t>> chunks,
                                 const FileWriting& writing = {});
/// As WriteFileAtomically, with one text.
absl::Status WriteTextFile(const std::string& path, std::string_view text, const FileWriting& writing = {});

/// The beginning of `file` where it is named as what WriteFileAtomically has not finished:
/// "NAME.tmp-<digits>-<digits>".
std::optional<std::string_view> UnfinishedName(std::string_view file);
/// Whether `file` is named as what WriteFileAtomically has not finished of `name` in the same folder. A name near the
/// file system's limit is shortened there.
bool IsUnfinished(std::string_view file, std::string_view name);

/// The target of the symbolic link at `path`, through further links, whether the target exists or not. `path` itself
/// where it is no link. New files of WriteFileAtomically are made beside it. Errors (FAILED_PRECONDITION): links that
/// lead in a circle.
absl::StatusOr<std::string> FollowLinks(const std::string& path);

/// Whether WriteFileAtomically can write `path`, to fail before the work that the file would hold. Nothing is opened or
/// made. Errors: `path` is a folder, or may not be written; its folder is missing, or may not be written to.
absl::Status CheckWritable(const std::string& path);

}  // namespace mpc::runtime
