// Model::Train: what it checks, where a run begins, and its epochs.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "frontend/train/training_run.h"

namespace mpc {

absl::Status Model::Impl::CheckTraining(std::int64_t epochs, const data::Dataset& dataset) {
  if (cells.step() == nullptr) {
    return absl::FailedPreconditionError(
        "Train needs an optimizer (and a loss), or a training step derived from nn::TrainingStep");
  }
  if (epochs < 1) return absl::InvalidArgumentError(absl::StrCat("epochs must be at least 1, got ", epochs));
  if (absl::Status checked = CheckCapsule(); !checked.ok()) return checked;
  if (cells.own_step() != nullptr) {
    // Freezing and unfreezing may have changed what is trainable.
    if (absl::Status trainable = cells.CheckTrainable(scalers.config()); !trainable.ok()) return trainable;
    const std::vector<Parameter>& trained = cells.optimizer()->parameters();
    if (std::none_of(trained.begin(), trained.end(), [](const Parameter& each) { return each.requires_grad(); })) {
      remarks.SayOnce("frozen", "remark: every parameter of the optimizer is frozen: training changes none");
    }
  }
  return cells.CheckTrainingColumns(dataset);
}

absl::Status Model::Impl::Train(Model& model, std::int64_t epochs, const data::Dataset& dataset,
                                const internal::Validation* validation, const CallbackList& given) {
  const internal::SetForAWhile running = phase.Train();
  const CallbackList callbacks = given.OnRank(processes.rank());
  if (absl::Status checked = CheckTraining(epochs, dataset); !checked.ok()) return checked;
  const absl::StatusOr<std::int64_t> steps = CountSteps(dataset);
  if (!steps.ok()) return steps.status();
  if (absl::Status begun = position.Begin(epochs, dataset.class_names(), *steps, remarks); !begun.ok()) return begun;
  callback_states.BeginRun();
  cells.step()->SetTrain(true);

  RunContext context;
  context.epochs = epochs;
  context.steps_per_epoch = *steps;
  context.global_step = position.global_step();
  context.epoch = position.in_run().run_epoch;
  context.set_save([&model](const std::string& path) { return model.SaveCheckpoint(path); });
  const std::unique_ptr<TrainedModel> trained = MakeTrained(model, dataset, *steps);
  context.set_trained(trained.get());
  if (validation != nullptr) {
    context.set_eval_names(validation->names());
    context.set_smaller_is_better(validation->smaller_is_better());
  }
  scalers.TellScaling(context);
  {
    const internal::SetForAWhile beginning = phase.Begin();
    processes.NoteActivity("OnTrainBegin of a callback");
    callbacks.OnTrainBegin(context);
  }
  processes.NoteActivity("the start of Train");
  absl::Status failure = context.failure();
  if (failure.ok()) failure = callback_states.Begin(callbacks, context);
  if (!options.record_gradient_norm) context.gradient_norm.reset();
  if (!options.record_learning_rate) context.learning_rate.reset();
  // Callbacks of a run that has not begun have counted nothing.
  std::optional<internal::CallbackStates::Following> following;
  if (failure.ok()) following.emplace(callback_states, callbacks, context);
  // A callback may have resumed a run.
  if (failure.ok()) failure = BeginUpdate();
  if (failure.ok()) failure = DeriveLossScale(model, dataset);
  if (failure.ok()) failure = ShareStart(model, epochs, dataset, validation);
  scalers.TellScaling(context);
  // A callback may have resumed a run, or asked for a stop, in rank 0 alone.
  if (failure.ok()) failure = processes.AgreeOnStop(context);
  context.global_step = position.global_step();
  context.epoch = position.in_run().run_epoch;
  internal::HookWrites hooks(
      processes, [&] { return KeptState(model); }, given.OnRank(1).empty());
  TrainingRun run(*this, dataset, validation, callbacks, hooks, context);
  while (position.in_run().run_epoch < epochs && failure.ok() && !context.stop_requested()) failure = run.Epoch();
  if (failure.ok() && run.micro_steps_left() > 0) {
    remarks.Say(
        absl::StrCat("remark: the last ", run.micro_steps_left(), " of ", options.accumulation_steps,
                     " batches of a step have no step yet: their gradients are kept for the next call of Train"));
  }
  if (failure.ok()) failure = hooks.Share("OnTrainEnd", context, [&] { callbacks.OnTrainEnd(context); });
  failure.Update(context.failure());
  callback_states.End();
  return failure;
}

absl::Status Model::Train(std::int64_t epochs, const data::Dataset& dataset, const CallbackList& callbacks) {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->status.ok()) return impl_->status;
  if (absl::Status free = impl_->phase.CheckNoRun("Train"); !free.ok()) return free;
  return impl_->processes.Run([&] { return impl_->Train(*this, epochs, dataset, nullptr, callbacks); });
}

}  // namespace mpc
