#include "frontend/state/checkpoint_folder.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string_view>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "frontend/state/checkpoint_file.h"
#include "runtime/atomic_file.h"
#include "runtime/descriptor.h"

namespace mpc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".safetensors";

/// The files of a folder by name; none where it cannot be read.
std::vector<fs::path> FilesIn(const std::string& directory) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    files.push_back(at->path());
  }
  return files;
}

std::optional<std::int64_t> StepOf(const std::string& name, const std::string& prefix) {
  const std::string begin = prefix + "-";
  if (name.size() <= begin.size() + kExtension.size() || name.compare(0, begin.size(), begin) != 0 ||
      name.compare(name.size() - kExtension.size(), kExtension.size(), kExtension) != 0) {
    return std::nullopt;
  }
  const std::string digits = name.substr(begin.size(), name.size() - begin.size() - kExtension.size());
  std::int64_t step = 0;
  const bool number = std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  return number && absl::SimpleAtoi(digits, &step) ? std::optional<std::int64_t>(step) : std::nullopt;
}

/// Removes a file that no process writes: WriteFileAtomically holds a lock on what it has not finished.
void RemoveUnlessWritten(const std::string& path) {
  const runtime::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return;
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return;
  std::error_code ignored;
  fs::remove(path, ignored);
}

/// Removes the unfinished files of a folder whose names fit; those that cannot be removed stay.
template <typename Fits>
void RemoveWhere(const std::string& directory, const Fits& fits) {
  for (const fs::path& path : FilesIn(directory)) {
    if (fits(path.filename().string())) RemoveUnlessWritten(path.string());
  }
}

}  // namespace

std::string CheckpointPath(const std::string& directory, const std::string& prefix, std::int64_t step) {
  return (fs::path(directory) / absl::StrCat(prefix, "-", step, std::string(kExtension))).string();
}

std::vector<CheckpointFile> ListCheckpoints(const std::string& directory, const std::string& prefix) {
  std::vector<CheckpointFile> checkpoints;
  for (const fs::path& path : FilesIn(directory)) {
    if (const std::optional<std::int64_t> step = StepOf(path.filename().string(), prefix); step.has_value()) {
      checkpoints.push_back({path.string(), *step});
    }
  }
  std::sort(checkpoints.begin(), checkpoints.end(),
            [](const CheckpointFile& a, const CheckpointFile& b) { return a.step < b.step; });
  return checkpoints;
}

absl::StatusOr<std::string> LatestCheckpoint(const std::string& directory, const std::string& prefix,
                                             std::ostream* warnings) {
  std::ostream& out = warnings != nullptr ? *warnings : std::cerr;
  const std::vector<CheckpointFile> checkpoints = ListCheckpoints(directory, prefix);
  for (auto at = checkpoints.rbegin(); at != checkpoints.rend(); ++at) {
    const absl::Status status = internal::ReadCheckpointFile(at->path).status();
    if (status.ok()) return at->path;
    out << "warning: passing over a checkpoint: " << status.message() << "\n";
  }
  if (checkpoints.empty()) {
    return absl::NotFoundError(absl::StrCat("no checkpoint ", CheckpointPath(directory, prefix, 0), " or later"));
  }
  return absl::DataLossError(
      absl::StrCat("none of the ", checkpoints.size(), " checkpoints '", prefix, "' in ", directory, " is readable"));
}

absl::Status RemoveOldCheckpoints(const std::string& directory, const std::string& prefix, std::int64_t count,
                                  std::int64_t saved, std::set<std::string>* intact) {
  std::vector<CheckpointFile> older = ListCheckpoints(directory, prefix);
  std::erase_if(older, [saved](const CheckpointFile& file) { return file.step >= saved; });
  if (static_cast<std::int64_t>(older.size()) < count) return absl::OkStatus();
  std::int64_t kept = 1;  // the file just saved
  for (auto at = older.rbegin(); at != older.rend(); ++at) {
    if (kept < count) {
      if (!intact->contains(at->path) && internal::ReadCheckpointFile(at->path).ok()) intact->insert(at->path);
      if (intact->contains(at->path)) ++kept;
      continue;
    }
    std::error_code error;
    fs::remove(at->path, error);
    if (error) return absl::UnavailableError(absl::StrCat("cannot remove ", at->path, ": ", error.message()));
    intact->erase(at->path);
  }
  return absl::OkStatus();
}

void RemoveUnfinishedFiles(const std::string& directory, const std::string& name) {
  RemoveWhere(directory, [&name](const std::string& file) { return runtime::IsUnfinished(file, name); });
}

void RemoveUnfinishedCheckpoints(const std::string& directory, const std::string& prefix) {
  RemoveWhere(directory, [&prefix](const std::string& file) {
    const std::optional<std::string_view> name = runtime::UnfinishedName(file);
    return name.has_value() && StepOf(std::string(*name), prefix).has_value();
  });
}

}  // namespace mpc
