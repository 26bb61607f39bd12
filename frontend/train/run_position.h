// Where the training of a Model stands. Not part of the public API.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/train/process_training.h"
#include "frontend/train/remarks.h"
#include "frontend/train/update_batches.h"

namespace mpc::internal {

/// Epoch, step and the data that they are of: what a run begins at, and what a checkpoint keeps of it. Steps of an
/// epoch are those of this process. A file counts the batches of all processes, so that another number of them can go
/// on.
class RunPosition {
 public:
  /// Steps run, skipped ones included. Each is that of a whole update.
  std::int64_t global_step() const { return global_step_; }
  const TrainPosition& in_run() const { return in_run_; }
  /// Batches that all processes of the last Train read in an epoch; 0: there was none.
  std::int64_t batches_per_epoch() const { return batches_per_epoch_; }
  /// Model::class_names.
  const std::vector<std::string>& class_names() const { return class_names_; }

  /// Notes the batches of an epoch, before Begin.
  void CountBatches(std::int64_t batches_per_epoch) { batches_per_epoch_ = batches_per_epoch; }
  /// Moves to where a call of Train begins, on data with these class names, empty where it has none. Errors
  /// (FAILED_PRECONDITION): a run that is continued has other names, or stands in an epoch of another size.
  absl::Status Begin(std::int64_t epochs, const std::vector<std::string>& class_names, std::int64_t steps_per_epoch,
                     const Remarks& remarks);
  /// Notes the last step that was started. The state is that of this step, and so is what a checkpoint says.
  void NoteStep(std::int64_t step_in_epoch, std::int64_t global_step);
  void CompleteEpoch() { in_run_.CompleteEpoch(); }

  /// Gives every process the position of rank 0. Errors: those of the group.
  absl::Status SendFromFirst(const ProcessTraining& processes);
  /// Takes over the position of a checkpoint. `continue_run`: the next Train goes on there.
  void Continue(const CheckpointMetadata& metadata, const ProcessTraining& processes, const UpdateBatches& updates,
                bool continue_run);
  /// Writes what a checkpoint says of it.
  void DescribeTo(CheckpointMetadata& metadata, const ProcessTraining& processes) const;

 private:
  std::int64_t global_step_ = 0;
  TrainPosition in_run_;
  std::int64_t batches_per_epoch_ = 0;
  bool continues_ = false;  ///< the next Train goes on at `in_run_`
  std::vector<std::string> class_names_;
};

}  // namespace mpc::internal
