#include "tools/mpc-bench/scratch_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace mpc::tools {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "mpc-bench-";
constexpr char kLock[] = "owner.lock";

/// Removes folders of this user whose lock nobody holds. One without the file is not complete, and stays.
void RemoveFoldersOfDeadOwners(const fs::path& temporary) {
  std::error_code error;
  for (fs::directory_iterator at(temporary, error), end; !error && at != end; at.increment(error)) {
    if (!absl::StartsWith(at->path().filename().string(), kPrefix)) continue;
    const int lock = ::open((at->path() / kLock).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (lock < 0) continue;
    std::error_code ignored;
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0) fs::remove_all(at->path(), ignored);
    ::close(lock);
  }
}

}  // namespace

absl::StatusOr<ScratchFolder> ScratchFolder::Make() {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  if (!error) RemoveFoldersOfDeadOwners(temporary);
  std::string name = (temporary / absl::StrCat(kPrefix, "XXXXXX")).string();
  if (error || ::mkdtemp(name.data()) == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("no temporary folder '", name, "': ", error ? error.message() : std::strerror(errno)));
  }
  // The file gets its name when it is locked: another process never finds it without its lock.
  const std::string path = (fs::path(name) / kLock).string(), unlocked = path + ".new";
  const int lock = ::open(unlocked.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) == 0) ::rename(unlocked.c_str(), path.c_str());
  return ScratchFolder(std::move(name), lock);
}

ScratchFolder::ScratchFolder(ScratchFolder&& other) noexcept
    : path_(std::exchange(other.path_, "")), lock_(std::exchange(other.lock_, -1)) {}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
  if (lock_ >= 0) ::close(lock_);
}

std::string ScratchFolder::Subfolder(const std::string& name) const {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(path_) / name;
  std::filesystem::create_directories(folder, error);
  return folder.string();
}

}  // namespace mpc::tools
