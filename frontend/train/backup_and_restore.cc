#include "frontend/train/backup_and_restore.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/state/checkpoint_folder.h"

namespace mpc {
namespace {

namespace fs = std::filesystem;

constexpr char kFile[] = "backup.safetensors";

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
  if (context.interrupted()) {
    context.Fail(context.SaveCheckpoint(path()));
    return;
  }
  if (!options_.delete_checkpoint || !context.failure().ok()) return;
  std::error_code error;
  fs::remove(path(), error);
  if (error) {
    context.Fail(
        absl::UnavailableError(absl::StrCat("BackupAndRestore: cannot remove ", path(), ": ", error.message())));
  }
}

}  // namespace mpc
