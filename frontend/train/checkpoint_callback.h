// Saving checkpoints while training.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "frontend/state/checkpoint_folder.h"
#include "frontend/train/callback.h"
#include "frontend/train/monitor.h"

namespace mpc {

struct ModelCheckpointOptions {
  std::string prefix = kCheckpointPrefix;  ///< prefix of file names, not empty; no '/'
  std::string directory = ".";             ///< made if it is missing
  std::int64_t save_checkpoint_steps = 0;  ///< save after every so many steps (global count); 0: not by steps
  /// Save after every so many epochs (RunContext::epoch); 0: not by epochs. Left out: 1, or 0 if steps are given.
  std::optional<std::int64_t> save_checkpoint_epochs;
  /// Number of readable files with the prefix that stay in the folder, whoever wrote them: those of the latest steps.
  /// The file just written is one of them. Damaged files do not count. 0: all files stay.
  std::int64_t keep_checkpoint_max = 5;
  /// Save only after epochs whose monitored value is better than all before it, and not at the end of training. Epochs
  /// that `save_checkpoint_epochs`, which must not be 0, passes over are not looked at. Nor are those without a value.
  /// The run's newest file is then its best. Takes no `save_checkpoint_steps`. MindSpore has none of these three.
  bool save_best_only = false;
  std::string monitor = "eval_loss";  ///< what to compare; see EarlyStoppingOptions
  std::string mode = "auto";          ///< see EarlyStoppingOptions
};

/// Writes "directory/prefix-<global step>.safetensors" as Model::SaveCheckpoint does, at the end of training too.
/// Stands last in the list of callbacks, so that it saves what the others have changed. A file that cannot be written
/// ends the run with an error. So does a folder that holds later steps of another run under this prefix, in files that
/// are not damaged. A file of the same step is written over. Options that are not valid end the run when it begins.
/// With `save_best_only` a resumed run goes on with the best value of the checkpoint.
class ModelCheckpoint : public Callback {
 public:
  explicit ModelCheckpoint(ModelCheckpointOptions options = {});

  /// True for the steps that `save_checkpoint_steps` saves after, and for all micro-steps that lead to them. An epoch's
  /// last step is among them only by that count.
  bool NeedsState(const RunContext& context) const override;
  std::string StateName() const override { return options_.save_best_only ? monitor_.StateName() : ""; }
  std::string SaveState() const override { return monitor_.SaveState({}); }
  absl::Status LoadState(const std::string& state) override { return monitor_.LoadState(state, {}); }
  /// Checks options and folder, makes the folder, and removes unfinished files of the prefix.
  void OnTrainBegin(RunContext& context) override;
  void OnStepEnd(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;
  /// Saves once there was a step, even if that step was saved: the position may have moved on to the next epoch.
  void OnTrainEnd(RunContext& context) override;

  /// The last file written; empty before the first one.
  const std::string& latest_checkpoint() const { return latest_; }

 private:
  void Save(RunContext& context);
  /// Whether the epoch that ends is one to save.
  bool IsToBeSaved(const RunContext& context);
  absl::Status Check() const;

  ModelCheckpointOptions options_;
  internal::Monitor monitor_;
  std::string latest_;
  std::set<std::string> intact_;  ///< paths of files that were written or read in this run
  std::int64_t last_step_ = 0;
};

}  // namespace mpc
