// Folders of checkpoints: "<prefix>-<global step>.safetensors", a file for each time training was saved.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mpc {

inline constexpr char kCheckpointPrefix[] = "checkpoint";

struct CheckpointFile {
  std::string path;
  std::int64_t step = 0;  ///< global step
};

/// "directory/prefix-step.safetensors".
std::string CheckpointPath(const std::string& directory, const std::string& prefix, std::int64_t step);

/// The files of that name in `directory`, by step; unread. Empty where there is no such folder.
std::vector<CheckpointFile> ListCheckpoints(const std::string& directory,
                                            const std::string& prefix = kCheckpointPrefix);

/// The newest checkpoint that is readable from front to back. Damaged ones are named on `warnings` (std::cerr if null)
/// and passed over. Errors: NOT_FOUND where there is none; DATA_LOSS where all are damaged.
absl::StatusOr<std::string> LatestCheckpoint(const std::string& directory,
                                             const std::string& prefix = kCheckpointPrefix,
                                             std::ostream* warnings = nullptr);

/// Removes checkpoints that are older than step `saved`, whose file was just written. That file and the `count` - 1
/// newest readable ones before it stay. Damaged files do not count: one is removed where it is older than those. Files
/// of later steps are left alone. `intact` has paths that are known to be readable. Others are read where something
/// might be removed, and then stand there too. Errors: the first file that cannot be removed.
absl::Status RemoveOldCheckpoints(const std::string& directory, const std::string& prefix, std::int64_t count,
                                  std::int64_t saved, std::set<std::string>* intact);

/// Removes what a process that was killed while it wrote `directory/name` left beside it: "name.tmp-<digits>-<digits>".
/// No other process may be writing it.
void RemoveUnfinishedFiles(const std::string& directory, const std::string& name);

/// As RemoveUnfinishedFiles, of every "prefix-<digits>.safetensors" in the folder.
void RemoveUnfinishedCheckpoints(const std::string& directory, const std::string& prefix);

}  // namespace mpc
