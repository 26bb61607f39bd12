#include "frontend/train/backup_and_restore.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "frontend/state/checkpoint_folder.h"
#include "runtime/descriptor.h"

namespace mpc {
namespace {

namespace fs = std::filesystem;

constexpr char kFile[] = "backup.safetensors";

absl::Status TakenError(const std::string& folder, const char* whose, const char* until) {
  return absl::FailedPreconditionError(
      absl::StrCat("BackupAndRestore: ", whose, " backs up to ", folder, ", and each would replace the backups of the ",
                   "other; give this run a folder of its own, or wait until that ", until, " ends"));
}

/// The folders that runs of this process back up to, each with a lock that other processes of this machine see. The
/// system drops the lock of a process that ends.
class FoldersInUse {
 public:
  static FoldersInUse& OfProcess() {
    static auto* const folders = new FoldersInUse;
    return *folders;
  }

  /// The claim of a run, which frees the folder where it is destroyed. Errors (FAILED_PRECONDITION): another run has
  /// it. Where folders cannot be locked, no other process has it.
  absl::StatusOr<std::shared_ptr<void>> Take(const std::string& folder) {
    const std::scoped_lock lock(mutex_);
    const std::string name = Name(folder);
    const auto [at, is_new] = locks_.try_emplace(name);
    if (!is_new) return TakenError(folder, "another BackupAndRestore of this process", "run");
    runtime::Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      locks_.erase(at);
      return TakenError(folder, "a run of another process", "process");
    }
    at->second = std::move(file);
    return std::shared_ptr<void>(nullptr, [this, name](void*) { Leave(name); });
  }

 private:
  void Leave(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    locks_.erase(name);
  }

  static std::string Name(const std::string& folder) {
    std::error_code error;
    const fs::path path = fs::canonical(folder, error);
    return error ? folder : path.string();
  }

  std::mutex mutex_;
  std::map<std::string, runtime::Descriptor> locks_;
};

}  // namespace

BackupAndRestore::BackupAndRestore(BackupAndRestoreOptions options) : options_(std::move(options)) {}

std::string BackupAndRestore::path() const { return (fs::path(options_.backup_dir) / kFile).string(); }

void BackupAndRestore::OnTrainBegin(RunContext& context) {
  restored_ = false;
  if (options_.backup_dir.empty() || options_.save_freq < 1) {
    context.Fail(absl::InvalidArgumentError(
        absl::StrCat("BackupAndRestore: backup_dir must be a folder and save_freq at least 1, got '",
                     options_.backup_dir, "' and ", options_.save_freq)));
    return;
  }
  std::error_code error;
  fs::create_directories(options_.backup_dir, error);
  if (error) {
    context.Fail(absl::UnavailableError(
        absl::StrCat("BackupAndRestore: cannot make the folder ", options_.backup_dir, ": ", error.message())));
    return;
  }
  absl::StatusOr<std::shared_ptr<void>> claim = FoldersInUse::OfProcess().Take(options_.backup_dir);
  if (!claim.ok()) {
    context.Fail(claim.status());
    return;
  }
  // A run that fails has no OnTrainEnd.
  context.KeepUntilEnd(*std::move(claim));
  RemoveUnfinishedFiles(options_.backup_dir, kFile);
  if (!fs::exists(path(), error)) return;
  if (context.trained() == nullptr) {
    context.Fail(absl::FailedPreconditionError("BackupAndRestore: there is no Model that could be restored"));
    return;
  }
  const absl::Status resumed = context.trained()->Resume(path(), context);
  restored_ = resumed.ok();
  if (!resumed.ok()) {
    context.Fail(absl::Status(resumed.code(), absl::StrCat("BackupAndRestore: ", resumed.message(),
                                                           "; without this file the run begins anew")));
  }
}

void BackupAndRestore::OnEpochEnd(RunContext& context) {
  if (context.failure().ok() && context.epoch % options_.save_freq == 0) context.Fail(context.SaveCheckpoint(path()));
}

void BackupAndRestore::OnTrainEnd(RunContext& context) {
  std::error_code error;
  if (context.interrupted()) {
    context.Fail(context.SaveCheckpoint(path()));
  } else if (options_.delete_checkpoint && context.failure().ok()) {
    fs::remove(path(), error);
  }
  if (error) {
    context.Fail(
        absl::UnavailableError(absl::StrCat("BackupAndRestore: cannot remove ", path(), ": ", error.message())));
  }
}

}  // namespace mpc
