#include "frontend/train/run_position.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::internal {

absl::Status RunPosition::Begin(std::int64_t epochs, const std::vector<std::string>& class_names,
                                std::int64_t steps_per_epoch, const Remarks& remarks) {
  const bool tells_names = !class_names.empty() && !class_names_.empty();
  // A file has replaced what is no UTF-8.
  if (continues_ && tells_names && FormatNames(class_names) != FormatNames(class_names_)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the classes of the data set are ", absl::StrJoin(class_names, ", "), ", but the checkpoint's are ",
        absl::StrJoin(class_names_, ", "), ": labels would mean other classes. Use the same data, or begin a ",
        "new run with LoadCheckpoint(path, {.continue_run = false})"));
  }
  if (!continues_) {
    // A run that was stopped inside an epoch has begun it.
    if (in_run_.step_in_epoch > 0) in_run_.CompleteEpoch();
    in_run_.run_epoch = 0;
  } else if (in_run_.step_in_epoch > 0 && in_run_.steps_per_epoch > 0 && in_run_.steps_per_epoch != steps_per_epoch) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the checkpoint is at step ", in_run_.step_in_epoch, " of an epoch of ", in_run_.steps_per_epoch,
        " steps, this data set has ", steps_per_epoch, ": use the same data and batch size, or begin a new run with ",
        "LoadCheckpoint(path, {.continue_run = false})"));
  }
  in_run_.steps_per_epoch = steps_per_epoch;
  if (continues_ && in_run_.run_epoch >= epochs) {
    remarks.Say(absl::StrCat("remark: nothing is left to train: the run of the checkpoint has ", in_run_.run_epoch,
                             " complete epochs, asked for are ", epochs));
  }
  continues_ = false;
  if (!class_names.empty()) class_names_ = class_names;
  return absl::OkStatus();
}

void RunPosition::NoteStep(std::int64_t step_in_epoch, std::int64_t global_step) {
  in_run_.step_in_epoch = step_in_epoch;
  global_step_ = global_step;
}

absl::Status RunPosition::SendFromFirst(const ProcessTraining& processes) {
  for (std::int64_t* number : {&global_step_, &in_run_.data_epoch, &in_run_.run_epoch, &in_run_.step_in_epoch}) {
    if (absl::Status status = processes.SendNumber(*number); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void RunPosition::Continue(const CheckpointMetadata& metadata, const ProcessTraining& processes,
                           const UpdateBatches& updates, bool continue_run) {
  global_step_ = metadata.global_step;
  in_run_ = metadata.position;
  batches_per_epoch_ = in_run_.steps_per_epoch;
  in_run_.step_in_epoch /= processes.size();
  in_run_.steps_per_epoch = updates.StepsOf(batches_per_epoch_);
  continues_ = continue_run;
  class_names_ = metadata.class_names;
}

void RunPosition::DescribeTo(CheckpointMetadata& metadata, const ProcessTraining& processes) const {
  metadata.global_step = global_step_;
  metadata.position = in_run_;
  metadata.position.step_in_epoch *= processes.size();
  if (batches_per_epoch_ > 0) metadata.position.steps_per_epoch = batches_per_epoch_;
  // Behind a Filter an epoch may have more batches than the first one, which was counted.
  if (metadata.position.step_in_epoch > metadata.position.steps_per_epoch) metadata.position.steps_per_epoch = 0;
  metadata.class_names = class_names_;
}

}  // namespace mpc::internal
