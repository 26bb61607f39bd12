// A run that goes on where it was interrupted.
#pragma once

#include <cstdint>
#include <string>

#include "frontend/train/callback.h"

namespace mpc {

struct BackupAndRestoreOptions {
  std::string backup_dir;         ///< made if it is missing; holds "backup.safetensors"
  std::int64_t save_freq = 1;     ///< epochs between two backups, >= 1; MindSpore's "epoch" is 1
  bool delete_checkpoint = true;  ///< whether the backup is removed when the run is over
};

/// Backs up the state of training at the end of epochs. Where there is a backup when a run begins, the run goes on at
/// it, bit for bit as after Model::LoadCheckpoint. A program that is killed and started again ends where it would have
/// ended. (MindSpore's gives the network its parameters back and trains all epochs.)
///
///     absl::Status trained = model.Fit(10, train_set, valid_set, {}, {BackupAndRestore({.backup_dir = "backup"})});
///
/// A run that OnRequestExit interrupts is backed up where it stands, and that backup stays. That of a run that ends
/// with an error stays too. Stands before callbacks that read the number of the step when training begins, such as
/// ModelCheckpoint. Wherever it stands, it saves behind the others (Callback::SavesRun). Errors end the run: a bad
/// option; a folder that cannot be made; what saving and resuming report, for a damaged backup too.
class BackupAndRestore : public Callback {
 public:
  explicit BackupAndRestore(BackupAndRestoreOptions options);

  bool SavesRun() const override { return true; }
  void OnTrainBegin(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;
  void OnTrainEnd(RunContext& context) override;

  /// Whether the last run went on at a backup.
  bool restored() const { return restored_; }

 private:
  std::string path() const;

  BackupAndRestoreOptions options_;
  bool restored_ = false;
};

}  // namespace mpc
