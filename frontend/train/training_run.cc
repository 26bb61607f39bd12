// Begins steps, starts them in launches, and reads what they leave behind.
#include "frontend/train/training_run.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"

namespace mpc {

using internal::CompiledStep;
using internal::kMicroStep;
using internal::StepOptions;
using internal::StepResults;

namespace {

bool Match(const std::vector<Tensor>& tensors, const std::vector<TensorSpec>& specs) {
  return std::equal(tensors.begin(), tensors.end(), specs.begin(), specs.end(),
                    [](const Tensor& tensor, const TensorSpec& spec) { return tensor.spec() == spec; });
}

}  // namespace

absl::Status Model::Impl::TrainingRun::Epoch() {
  context_.epoch = model_.position.in_run().run_epoch + 1;
  begun_in_epoch_ = context_.step_in_epoch = model_.position.in_run().step_in_epoch;
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = model_.OpenEpoch(dataset_);
  if (!rows.ok()) return rows.status();
  context_.set_eval_results({});
  absl::Status status = hooks_.Share("OnEpochBegin", context_, [this] { callbacks_.OnEpochBegin(context_); });
  bool complete = context_.epoch_complete = false;
  if (status.ok()) status = model_.processes.AgreeOnStop(context_);
  while (status.ok() && !(context_.stop_requested() && MayEnd())) {
    Step step;
    step.timing.data_begin = std::chrono::steady_clock::now();
    const absl::StatusOr<bool> more = (*rows)->Next(&step.columns);
    step.timing.data_end = std::chrono::steady_clock::now();
    if (more.ok() && *more) {
      const std::chrono::duration<double> waited = step.timing.data_end - step.timing.data_begin;
      context_.data_wait_seconds += waited.count();
      status = Begin(std::move(step));
      if (status.ok() && MayEnd()) status = model_.processes.AgreeOnStop(context_, hooks_.TakeWritten());
      continue;
    }
    status = Flush();
    status.Update(more.status());
    complete = status.ok();
    if (complete) model_.position.CompleteEpoch();
    if (complete) status = model_.CheckUpdatesOfEpoch(begun_in_epoch_, context_.steps_per_epoch);
    break;
  }
  // A stop asked for in OnStepBegin finds a step that was begun.
  if (status.ok()) status = Flush();
  context_.epoch_complete = complete;
  const bool validates = complete && validation_ != nullptr && validation_->Follows(context_.epoch);
  if (status.ok() && validates) status = model_.Validate(*validation_, callbacks_, hooks_, context_);
  if (status.ok()) status = hooks_.Share("OnEpochEnd", context_, [this] { callbacks_.OnEpochEnd(context_); });
  status.Update(context_.failure());
  if (status.ok()) status = model_.processes.AgreeOnStop(context_, hooks_.TakeWritten());
  return status;
}

absl::Status Model::Impl::TrainingRun::Begin(Step step) {
  if (gathered_.empty() && started_.empty()) begun_steps_ = model_.position.global_step();
  model_.processes.NoteStep(begun_steps_ + 1);
  context_.step_in_epoch = step.step_in_epoch = ++begun_in_epoch_;
  context_.global_step = begun_steps_;
  context_.set_batch(&step.columns);
  const absl::Status written = hooks_.Refuse("OnStepBegin", [this] { callbacks_.OnStepBegin(context_); });
  if (!written.ok()) return written;
  absl::StatusOr<CompiledStep*> program = FindProgram(step.columns, model_.updates.CompleteBehind(begun_in_epoch_));
  if (!program.ok()) return program.status();
  step.program = *program;
  const bool ahead = RunsAhead(*step.program);
  const bool alone = !ahead || callbacks_.NeedsState(context_);
  step.timed_for = callbacks_.WantingTiming(context_);
  context_.set_batch(nullptr);
  if (!gathered_.empty() && gathered_.front().program != step.program) {
    if (absl::Status status = Launch(); !status.ok()) return status;
  }
  if (absl::Status counted = CountMicroStep(step); !counted.ok()) return counted;
  step.global_step = begun_steps_ += step.completes ? 1 : 0;
  if (absl::Status losses = CheckLosses(step); !losses.ok()) return losses;
  if (absl::Status labels = step.program->CheckLabels(step.columns); !labels.ok()) {
    const absl::Status earlier = Flush();
    return earlier.ok() ? StepFailed(step, labels) : earlier;
  }
  if (!step.timed_for.empty()) return RunTimed(std::move(step));
  const int most = ahead ? step.program->executable().steps_per_launch() : 1;
  gathered_.push_back(std::move(step));
  if (alone) return Flush();
  return gathered_.size() < static_cast<std::size_t>(most) ? absl::OkStatus() : Launch();
}

absl::StatusOr<CompiledStep*> Model::Impl::TrainingRun::FindProgram(const data::Row& row, bool is_last) {
  if (program_ == nullptr || program_structure_ != internal::StructureVersion() || !Match(row, program_inputs_)) {
    program_ = nullptr;
    // A callback may have unfrozen or replaced layers.
    if (model_.cells.own_step() != nullptr) {
      if (absl::Status trainable = model_.cells.CheckTrainable(model_.scalers.config()); !trainable.ok())
        return trainable;
    }
    // A callback may have replaced an optimizer.
    options_.optimizers = model_.TrainOptions(dataset_.column_names()).optimizers;
    absl::StatusOr<CompiledStep*> last = Compile(row, options_);
    if (!last.ok()) return last.status();
    absl::StatusOr<CompiledStep*> before = last;
    if (model_.updates.have_own_program()) before = Compile(row, OptionsBeforeLast(options_));
    if (!before.ok()) return before.status();
    if (validation_ != nullptr && program_inputs_.empty()) {
      if (absl::Status fits = model_.CheckEvaluationFits(validation_->dataset()); !fits.ok()) return fits;
    }
    program_ = *last;
    before_last_ = *before;
    program_inputs_ = internal::SpecsOf(row);
    program_structure_ = internal::StructureVersion();
  }
  return is_last ? program_ : before_last_;
}

absl::StatusOr<CompiledStep*> Model::Impl::TrainingRun::Compile(const data::Row& row, const StepOptions& options) {
  absl::StatusOr<CompiledStep*> found = model_.Program(model_.cells.step(), model_.cells.StepFunction(), row, options);
  if (!found.ok()) return found.status();
  if (MayRunAhead(**found)) {
    if (absl::Status followed = model_.scalers.Follow(); !followed.ok()) return followed;
  }
  return *found;
}

bool Model::Impl::TrainingRun::MayRunAhead(const CompiledStep& program) const {
  // What a step prints must appear in order with what the host prints. An overflow is diagnosed from the state that it
  // met.
  if (!program.can_run_ahead() || program.prints() || model_.options.diagnose_overflow) return false;
  // So is the step that a capsule holds.
  if (!model_.options.capsule_path.empty()) return false;
  // A scaler that moves several times in a step cannot be followed by its records.
  const std::vector<internal::StepFacts::Scaler>& scalers = program.facts().scalers;
  return std::all_of(scalers.begin(), scalers.end(), [](const auto& scaler) { return scaler.updates <= 1; });
}

absl::Status Model::Impl::TrainingRun::CountMicroStep(Step& step) {
  const std::int64_t count = model_.options.accumulation_steps;
  if (count == 1) return absl::OkStatus();
  if (model_.updates.are_whole()) {
    step.micro_step = (begun_in_epoch_ - 1) % count;
    step.completes = model_.updates.CompleteBehind(begun_in_epoch_);
    return absl::OkStatus();
  }
  for (const Parameter& entry : model_.pass_state->accumulators()) {
    if (entry.name() != kMicroStep) continue;
    if (entry.entry()->version() != micro_step_version_ && gathered_.empty()) {
      absl::StatusOr<Tensor> value = entry.Value();
      if (!value.ok()) return value.status();
      micro_step_ = value->Item<std::int64_t>();
    }
    step.micro_step = micro_step_;
    micro_step_ = (micro_step_ + 1) % count;
    step.completes = micro_step_ == 0;
    return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Model::Impl::TrainingRun::CheckLosses(const Step& step) {
  const std::int64_t count = model_.options.accumulation_steps;
  if (count == 1) return absl::OkStatus();
  const absl::Status same = model_.update_losses.Next(step.program->program(), step.micro_step, count);
  if (same.ok()) return same;
  const absl::Status earlier = Flush();
  return earlier.ok() ? StepFailed(step, same) : earlier;
}

void Model::Impl::TrainingRun::NoteLaunch(const Step& last) {
  model_.scalers.NoteLaunch();
  if (model_.options.accumulation_steps > 1) {
    for (const Parameter& entry : model_.pass_state->accumulators()) {
      if (entry.name() == kMicroStep) micro_step_version_ = entry.entry()->version();
    }
  }
  model_.position.NoteStep(last.step_in_epoch, last.global_step);
}

absl::Status Model::Impl::TrainingRun::FollowFrozen(const Step& step) {
  if (model_.options.accumulation_steps == 1) return absl::OkStatus();
  const auto names = [this] {
    std::vector<std::string> names;
    for (const auto& [name, parameter] : model_.cells.root()->ParametersAndNames()) names.push_back(name);
    return names;
  };
  absl::Status added = model_.pass_state->AddZeros(step.program->program().state, names, step.micro_step,
                                                   model_.options.accumulation_steps);
  model_.pass_state->NoteVersions();
  return added;
}

absl::Status Model::Impl::TrainingRun::Launch() {
  if (gathered_.empty()) return absl::OkStatus();
  const std::size_t count = gathered_.size();
  CompiledStep& program = *gathered_.front().program;
  absl::StatusOr<internal::ActiveScalers::Writes> writes = model_.scalers.TakeWrites();
  if (!writes.ok()) return OfTheStepThatFailed(writes.status());
  gathered_.front().writes = *std::move(writes);
  std::vector<const data::Row*> rows;
  for (const Step& step : gathered_) rows.push_back(&step.columns);
  // A capsule has the state that the step begins with.
  absl::Status kept = model_.pass_state->KeepWritten(gathered_.front().micro_step);
  if (!kept.ok()) return OfTheStepThatFailed(kept);
  // A run that writes a capsule never gathers two steps.
  model_.NameStateOfCapsule();
  kept = model_.capsule_writer.Before(program, gathered_.front().number_in_run());
  if (!kept.ok()) return OfTheStepThatFailed(kept);
  if (absl::Status status = program.Start(rows); !status.ok()) return OfTheStepThatFailed(status);
  NoteLaunch(gathered_.back());
  for (const Step& step : gathered_) {
    if (absl::Status followed = FollowFrozen(step); !followed.ok()) return OfTheStepThatFailed(followed);
  }
  std::uint64_t number = program.executable().steps_started() - count;
  for (Step& step : gathered_) {
    step.number = number++;
    started_.push_back(std::move(step));
  }
  gathered_.clear();
  absl::Status status;
  while (status.ok() && started_.size() > count) status = FinishOldest();
  return status;
}

absl::Status Model::Impl::TrainingRun::RunTimed(Step step) {
  if (absl::Status status = Flush(); !status.ok()) return status;
  absl::StatusOr<internal::ActiveScalers::Writes> writes = model_.scalers.TakeWrites();
  if (!writes.ok()) return writes.status();
  step.writes = *std::move(writes);
  if (absl::Status kept = model_.pass_state->KeepWritten(step.micro_step); !kept.ok()) return StepFailed(step, kept);
  model_.NameStateOfCapsule();
  if (absl::Status status = model_.capsule_writer.Before(*step.program, step.number_in_run()); !status.ok()) {
    return StepFailed(step, status);
  }
  step.timing.global_step = step.global_step;
  step.timing.program = &step.program->program();
  step.timing.run_begin = std::chrono::steady_clock::now();
  absl::StatusOr<std::vector<runtime::InstructionTime>> times = step.program->RunTimed(step.columns);
  step.timing.run_end = std::chrono::steady_clock::now();
  if (!times.ok()) return StepFailed(step, times.status());
  step.timing.instructions = *std::move(times);
  NoteLaunch(step);
  if (absl::Status followed = FollowFrozen(step); !followed.ok()) return StepFailed(step, followed);
  step.number = step.program->executable().steps_started() - 1;
  started_.push_back(std::move(step));
  return FinishOldest();
}

absl::Status Model::Impl::TrainingRun::Flush() {
  absl::Status status = Launch();
  while (status.ok() && !started_.empty()) status = FinishOldest();
  return status;
}

absl::Status Model::Impl::TrainingRun::FinishOldest() {
  Step step = std::move(started_.front());
  started_.pop_front();
  absl::Status status = Finish(step);
  context_.set_batch(nullptr);
  return status;
}

absl::Status Model::Impl::TrainingRun::Finish(Step& step) {
  const StepResults results(*step.program, step.number);
  if (absl::Status status = results.status(); !status.ok()) return StepFailed(step, status);
  step.timing.records_begin = std::chrono::steady_clock::now();
  results.Print();
  context_.step_in_epoch = step.step_in_epoch;
  context_.global_step = step.global_step;
  context_.set_batch(&step.columns);
  model_.scalers.FollowStep(step.writes, results, step.completes);
  const bool first_of_run = !model_.scalers.in_overflow_run();
  KeepBatch(step);
  absl::Status status = model_.AfterStep(results, step.completes, context_);
  if (absl::Status shared = model_.WriteCapsule(results, step.columns, step.completes, context_); !shared.ok()) {
    return StepFailed(step, shared);
  }
  const bool diagnose = !status.ok() || (first_of_run && model_.options.diagnose_overflow);
  if (context_.overflow && diagnose) status = model_.DiagnoseOverflow(results, batches_, status);
  if (step.completes) batches_.clear();
  if (status.ok()) status = hooks_.Refuse("OnStepEnd", [this] { callbacks_.OnStepEnd(context_); });
  status.Update(context_.failure());
  step.timing.records_end = std::chrono::steady_clock::now();
  if (status.ok()) {
    for (Callback* callback : step.timed_for) callback->OnStepTimed(step.timing);
  }
  return status;
}

void Model::Impl::TrainingRun::KeepBatch(const Step& step) {
  const bool keeps_all = model_.options.diagnose_overflow || model_.scalers.in_overflow_run();
  if (step.micro_step == 0 || !keeps_all) batches_.clear();
  batches_.push_back({step.micro_step, step.columns});
}

absl::Status Model::Impl::TrainingRun::OfTheStepThatFailed(const absl::Status& status) const {
  for (const Step& step : started_) {
    const absl::Status earlier = StepResults(*step.program, step.number).status();
    if (!earlier.ok()) return StepFailed(step, earlier);
  }
  return status;
}

absl::Status Model::Impl::TrainingRun::StepFailed(const Step& step, const absl::Status& status) const {
  return absl::Status(status.code(), absl::StrCat("training step ", step.number_in_run(), " (epoch ", context_.epoch,
                                                  " step ", step.step_in_epoch, "): ", status.message()));
}

}  // namespace mpc
