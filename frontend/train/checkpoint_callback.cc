#include "frontend/train/checkpoint_callback.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/state/checkpoint_file.h"

namespace mpc {

ModelCheckpoint::ModelCheckpoint(ModelCheckpointOptions options)
    : options_(std::move(options)),
      monitor_({.owner = "ModelCheckpoint", .monitor = options_.monitor, .mode = options_.mode}) {
  if (!options_.save_checkpoint_epochs.has_value()) {
    options_.save_checkpoint_epochs = options_.save_checkpoint_steps > 0 ? 0 : 1;
  }
}

absl::Status ModelCheckpoint::Check() const {
  if (options_.prefix.empty() || options_.prefix.find('/') != std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("ModelCheckpoint: prefix must be a file name without '/', got '", options_.prefix, "'"));
  }
  if (options_.save_checkpoint_steps < 0 || *options_.save_checkpoint_epochs < 0 || options_.keep_checkpoint_max < 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ModelCheckpoint: save_checkpoint_steps, save_checkpoint_epochs and keep_checkpoint_max must not be negative, ",
        "got ", options_.save_checkpoint_steps, ", ", *options_.save_checkpoint_epochs, " and ",
        options_.keep_checkpoint_max));
  }
  if (options_.save_best_only && (options_.save_checkpoint_steps > 0 || *options_.save_checkpoint_epochs == 0)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "ModelCheckpoint: save_best_only saves at the end of epochs, got save_checkpoint_steps = ",
        options_.save_checkpoint_steps, " and save_checkpoint_epochs = ", *options_.save_checkpoint_epochs));
  }
  return absl::OkStatus();
}

void ModelCheckpoint::OnTrainBegin(RunContext& context) {
  last_step_ = context.global_step;
  intact_.clear();
  context.Fail(Check());
  if (options_.save_best_only) context.Fail(monitor_.Begin(context));
  if (!context.failure().ok()) return;
  std::error_code error;
  std::filesystem::create_directories(options_.directory, error);
  if (error) {
    context.Fail(
        absl::UnavailableError(absl::StrCat("cannot make the folder ", options_.directory, ": ", error.message())));
    return;
  }
  // Counting steps from zero again would let this run's files pass for older than those, and be removed first.
  for (const CheckpointFile& file : ListCheckpoints(options_.directory, options_.prefix)) {
    if (file.step <= context.global_step || !internal::ReadCheckpointFile(file.path).ok()) continue;
    context.Fail(absl::FailedPreconditionError(
        absl::StrCat(file.path, " is of step ", file.step, ", training begins at step ", context.global_step,
                     ": resume from the newest checkpoint, or choose another folder or prefix")));
    return;
  }
  RemoveUnfinishedCheckpoints(options_.directory, options_.prefix);
}

bool ModelCheckpoint::NeedsState(const RunContext& context) const {
  const std::int64_t every = options_.save_checkpoint_steps;
  return every > 0 && (context.global_step + 1) % every == 0;
}

void ModelCheckpoint::OnStepEnd(RunContext& context) {
  // While gradients are accumulated the global step stands still.
  const bool stepped = context.global_step != last_step_;
  last_step_ = context.global_step;
  const std::int64_t every = options_.save_checkpoint_steps;
  if (stepped && every > 0 && context.global_step % every == 0) Save(context);
}

bool ModelCheckpoint::IsToBeSaved(const RunContext& context) {
  const std::int64_t every = *options_.save_checkpoint_epochs;
  if (every <= 0 || context.epoch % every != 0) return false;
  if (!options_.save_best_only) return true;
  const std::optional<double> value = monitor_.ValueAt(context);
  return value.has_value() && monitor_.Improves(*value);
}

void ModelCheckpoint::OnEpochEnd(RunContext& context) {
  if (IsToBeSaved(context)) Save(context);
}

void ModelCheckpoint::OnTrainEnd(RunContext& context) {
  // Saved again even if this step was: since then the position may have moved on to the next epoch.
  if (context.global_step > 0 && !options_.save_best_only) Save(context);
}

void ModelCheckpoint::Save(RunContext& context) {
  if (!context.failure().ok()) return;
  const std::string path = CheckpointPath(options_.directory, options_.prefix, context.global_step);
  if (absl::Status status = context.SaveCheckpoint(path); !status.ok()) {
    context.Fail(status);
    return;
  }
  latest_ = path;
  if (options_.keep_checkpoint_max <= 0) return;
  intact_.insert(path);
  context.Fail(RemoveOldCheckpoints(options_.directory, options_.prefix, options_.keep_checkpoint_max,
                                    context.global_step, &intact_));
}

}  // namespace mpc
