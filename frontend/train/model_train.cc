// Model::Train: begins steps, starts them in launches, and reads what they leave behind.
#include <algorithm>
#include <chrono>
#include <deque>

#include "absl/strings/str_cat.h"
#include "frontend/train/model_impl.h"

namespace mpc {

using amp::internal::ScalerHistory;
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

/// One call of Train. Steps are begun one by one, gathered until a launch is full, started, and finished: their records
/// are read and their last hooks called. A device that keeps the results of two launches is given the next launch
/// before those of the last one are read. So it never waits for the host. Elsewhere, and where a callback needs the
/// state, a step is finished before the next one begins.
class Model::Impl::TrainingRun {
 public:
  TrainingRun(Impl& model, const data::Dataset& dataset, const Validation* validation, const CallbackList& callbacks,
              RunContext& context)
      : model_(model),
        dataset_(dataset),
        validation_(validation),
        callbacks_(callbacks),
        context_(context),
        options_(model.TrainOptions(dataset.column_names())) {
    ++model_.runs;
  }
  ~TrainingRun() {
    if (--model_.runs == 0) model_.replaced.clear();
    model_.scaler_histories.clear();
  }
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  /// What is left of the present epoch.
  absl::Status Epoch();
  /// Micro-steps since the last step whose optimizer acted.
  std::int64_t micro_steps_left() const { return micro_step_; }

 private:
  struct Step {
    CompiledStep* program = nullptr;
    std::uint64_t number = 0;  ///< number of the step among the program's steps
    data::Row columns;
    std::int64_t step_in_epoch = 0;
    std::int64_t global_step = 0;  ///< global step after this step
    bool completes = true;         ///< false: a micro-step before the last, after which no optimizer acts
    std::int64_t micro_step = 0;   ///< its number in the update, from 0
    std::map<const LossScaler*, ScalerHistory::Writes> writes;  ///< the host's, since the launch before it
    std::vector<Callback*> timed_for;
    StepTiming timing;

    /// The number of the step in its run, from 1. A micro-step is part of the step that comes next.
    std::int64_t number_in_run() const { return completes ? global_step : global_step + 1; }
  };

  /// Calls OnStepBegin; starts and finishes what can be.
  absl::Status Begin(Step step);
  /// The Program of a step on `row`; `is_last`: of an update, where its steps have two Programs.
  absl::StatusOr<CompiledStep*> FindProgram(const data::Row& row, bool is_last);
  absl::StatusOr<CompiledStep*> Compile(const data::Row& row, const StepOptions& options);
  /// Whether a run may end behind the steps that were begun.
  bool MayEnd() const { return !model_.updates.are_whole() || model_.updates.CompleteBehind(begun_in_epoch_); }
  /// Whether a launch of `program` may be started before the last one is finished.
  bool MayRunAhead(const CompiledStep& program) const;
  /// Whether it may at present. It may not in a run of overflows, which may end training, or be diagnosed, at any of
  /// its steps.
  bool RunsAhead(const CompiledStep& program) const { return MayRunAhead(program) && !model_.in_overflow_run; }
  /// Numbers `step`, which comes next, in its update.
  absl::Status CountMicroStep(Step& step);
  absl::Status FollowScalers(const CompiledStep& program);

  /// Starts what is gathered, then finishes the launches before it.
  absl::Status Launch();
  absl::Status RunTimed(Step step);
  absl::Status TakeWrites(Step& first);
  void NoteLaunch(const Step& last);
  /// Lets Parameters whose gradients a micro-step has not taken have a gradient of zero in it.
  absl::Status FollowFrozen(const Step& step);

  /// Starts and finishes everything.
  absl::Status Flush();
  absl::Status FinishOldest();
  absl::Status Finish(Step& step);
  /// Keeps the batch of `step` for a diagnosis, beside those of its update where one may be asked for.
  void KeepBatch(const Step& step);
  /// The failure of an earlier step that `status` repeats, else `status`.
  absl::Status OfTheStepThatFailed(const absl::Status& status) const;
  absl::Status StepFailed(const Step& step, const absl::Status& status) const;

  Impl& model_;
  const data::Dataset& dataset_;
  const Validation* validation_;  ///< null: nothing is evaluated
  const CallbackList& callbacks_;
  RunContext& context_;
  StepOptions options_;

  // The Program of the last step serves the next one while input types and structure stand still.
  CompiledStep* program_ = nullptr;
  CompiledStep* before_last_ = nullptr;  ///< that of an update's steps before the last one; mostly `program_`
  std::vector<TensorSpec> program_inputs_;
  std::uint64_t program_structure_ = 0;

  std::deque<Step> gathered_;        ///< begun, of one Program, not started
  std::deque<Step> started_;         ///< not finished
  std::vector<MicroBatch> batches_;  ///< what KeepBatch has kept
  std::int64_t begun_in_epoch_ = 0;
  std::int64_t begun_steps_ = 0;  ///< Model::global_step after the last step that was begun
  std::int64_t micro_step_ = 0;
  std::uint64_t micro_step_version_ = 0;  ///< version of its state entry after the last launch
};

absl::Status Model::Impl::TrainingRun::Epoch() {
  context_.epoch = model_.position.run_epoch + 1;
  begun_in_epoch_ = context_.step_in_epoch = model_.position.step_in_epoch;
  absl::StatusOr<std::unique_ptr<data::DatasetIterator>> rows = model_.OpenEpoch(dataset_);
  if (!rows.ok()) return rows.status();
  context_.set_eval_results({});
  callbacks_.OnEpochBegin(context_);
  absl::Status status = context_.failure();
  bool complete = false;
  status.Update(model_.processes.AgreeOnStop(context_));
  while (status.ok() && !(context_.stop_requested() && MayEnd())) {
    Step step;
    step.timing.data_begin = std::chrono::steady_clock::now();
    const absl::StatusOr<bool> more = (*rows)->Next(&step.columns);
    step.timing.data_end = std::chrono::steady_clock::now();
    if (more.ok() && *more) {
      const std::chrono::duration<double> waited = step.timing.data_end - step.timing.data_begin;
      context_.data_wait_seconds += waited.count();
      status = Begin(std::move(step));
      if (status.ok() && MayEnd()) status = model_.processes.AgreeOnStop(context_);
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
  const bool validates =
      complete && validation_ != nullptr && validation_->options.valid_frequency.Includes(context_.epoch);
  if (status.ok() && validates) status = model_.Validate(*validation_, callbacks_, context_);
  if (status.ok()) callbacks_.OnEpochEnd(context_);
  status.Update(context_.failure());
  if (status.ok()) status = model_.processes.SendLearningRates(*context_.trained());
  if (status.ok()) status = model_.processes.AgreeOnStop(context_);
  return status;
}

absl::Status Model::Impl::TrainingRun::Begin(Step step) {
  if (gathered_.empty() && started_.empty()) begun_steps_ = model_.global_step;
  model_.processes.NoteStep(begun_steps_ + 1);
  context_.step_in_epoch = step.step_in_epoch = ++begun_in_epoch_;
  context_.global_step = begun_steps_;
  context_.set_batch(&step.columns);
  callbacks_.OnStepBegin(context_);
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
    if (model_.own_step != nullptr) {
      if (absl::Status trainable = model_.CheckTrainable(); !trainable.ok()) return trainable;
    }
    // A callback may have replaced an optimizer.
    options_.optimizers = model_.TrainOptions(dataset_.column_names()).optimizers;
    absl::StatusOr<CompiledStep*> last = Compile(row, options_);
    if (!last.ok()) return last.status();
    absl::StatusOr<CompiledStep*> before = last;
    if (model_.updates.have_own_program()) before = Compile(row, OptionsBeforeLast(options_));
    if (!before.ok()) return before.status();
    if (validation_ != nullptr && program_inputs_.empty()) {
      if (absl::Status fits = model_.CheckEvaluationFits(validation_->dataset); !fits.ok()) return fits;
    }
    program_ = *last;
    before_last_ = *before;
    program_inputs_ = internal::SpecsOf(row);
    program_structure_ = internal::StructureVersion();
  }
  return is_last ? program_ : before_last_;
}

absl::StatusOr<CompiledStep*> Model::Impl::TrainingRun::Compile(const data::Row& row, const StepOptions& options) {
  absl::StatusOr<CompiledStep*> found = model_.Program(
      model_.step.cell(), [this](const std::vector<Tensor>& columns) { return model_.step.Flat(columns); }, row,
      options);
  if (!found.ok()) return found.status();
  if (absl::Status status = FollowScalers(**found); !status.ok()) return status;
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

absl::Status Model::Impl::TrainingRun::FollowScalers(const CompiledStep& program) {
  if (!MayRunAhead(program)) return absl::OkStatus();
  for (const LossScaler* scaler : model_.ActiveScalers()) {
    std::unique_ptr<ScalerHistory>& history = model_.scaler_histories[scaler];
    if (history != nullptr) continue;
    absl::StatusOr<std::unique_ptr<ScalerHistory>> created = ScalerHistory::Create(*scaler);
    if (!created.ok()) return created.status();
    history = *std::move(created);
  }
  return absl::OkStatus();
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

absl::Status Model::Impl::TrainingRun::TakeWrites(Step& first) {
  for (const auto& [scaler, history] : model_.scaler_histories) {
    absl::StatusOr<ScalerHistory::Writes> writes = history->TakeWrites();
    if (!writes.ok()) return writes.status();
    first.writes[scaler] = *std::move(writes);
  }
  return absl::OkStatus();
}

void Model::Impl::TrainingRun::NoteLaunch(const Step& last) {
  for (const auto& [scaler, history] : model_.scaler_histories) history->NoteLaunch();
  if (model_.options.accumulation_steps > 1) {
    for (const Parameter& entry : model_.pass_state->accumulators()) {
      if (entry.name() == kMicroStep) micro_step_version_ = entry.entry()->version();
    }
  }
  // The state is that of the last step: so is what a checkpoint says.
  model_.position.step_in_epoch = last.step_in_epoch;
  model_.global_step = last.global_step;
}

absl::Status Model::Impl::TrainingRun::FollowFrozen(const Step& step) {
  if (model_.options.accumulation_steps == 1) return absl::OkStatus();
  const auto names = [this] {
    std::vector<std::string> names;
    for (const auto& [name, parameter] : model_.root()->ParametersAndNames()) names.push_back(name);
    return names;
  };
  return model_.pass_state->AddZeros(step.program->program().state, names, step.micro_step,
                                     model_.options.accumulation_steps);
}

absl::Status Model::Impl::TrainingRun::Launch() {
  if (gathered_.empty()) return absl::OkStatus();
  const std::size_t count = gathered_.size();
  CompiledStep& program = *gathered_.front().program;
  if (absl::Status status = TakeWrites(gathered_.front()); !status.ok()) return OfTheStepThatFailed(status);
  std::vector<const data::Row*> rows;
  for (const Step& step : gathered_) rows.push_back(&step.columns);
  // A run that writes a capsule never gathers two steps.
  model_.NameStateOfCapsule();
  absl::Status kept = model_.capsule_writer.Before(program, gathered_.front().number_in_run());
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
  if (absl::Status status = TakeWrites(step); !status.ok()) return status;
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
  for (const auto& [scaler, history] : model_.scaler_histories) {
    std::int32_t first_bad = -1;
    if (const std::optional<double> record = model_.FirstBad(results, *scaler); record.has_value()) {
      first_bad = static_cast<std::int32_t>(*record);
    }
    history->Step(step.writes[scaler], step.completes ? &first_bad : nullptr);
  }
  const bool first_of_run = !model_.in_overflow_run;
  KeepBatch(step);
  absl::Status status = model_.AfterStep(results, step.completes, context_);
  if (absl::Status shared = model_.WriteCapsule(results, step.columns, step.completes, context_); !shared.ok()) {
    return StepFailed(step, shared);
  }
  const bool diagnose = !status.ok() || (first_of_run && model_.options.diagnose_overflow);
  if (context_.overflow && diagnose) status = model_.DiagnoseOverflow(results, batches_, status);
  if (step.completes) batches_.clear();
  if (status.ok()) callbacks_.OnStepEnd(context_);
  status.Update(context_.failure());
  step.timing.records_end = std::chrono::steady_clock::now();
  if (status.ok()) {
    for (Callback* callback : step.timed_for) callback->OnStepTimed(step.timing);
  }
  return status;
}

void Model::Impl::TrainingRun::KeepBatch(const Step& step) {
  const bool keeps_all = model_.options.diagnose_overflow || model_.in_overflow_run;
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

absl::Status Model::Impl::CheckTraining(std::int64_t epochs, const data::Dataset& dataset) {
  if (!step.defined()) {
    return absl::FailedPreconditionError(
        "Train needs an optimizer (and a loss), or a training step derived from nn::TrainingStep");
  }
  if (epochs < 1) return absl::InvalidArgumentError(absl::StrCat("epochs must be at least 1, got ", epochs));
  if (absl::Status checked = CheckCapsule(); !checked.ok()) return checked;
  const bool own = own_step != nullptr;
  if (own) {
    // Freezing and unfreezing may have changed what is trainable.
    if (absl::Status trainable = CheckTrainable(); !trainable.ok()) return trainable;
    const std::vector<Parameter>& trained = optimizer->parameters();
    if (std::none_of(trained.begin(), trained.end(), [](const Parameter& each) { return each.requires_grad(); }) &&
        said.insert("frozen").second) {
      Say("remark: every parameter of the optimizer is frozen: training changes none");
    }
  }
  const int arity = own && network.arity() >= 0 ? network.arity() + 1 : step.arity();
  return CheckColumns(dataset, arity, own ? "training (the network's inputs and a label)" : "the training step");
}

absl::Status Model::Impl::Train(Model& model, std::int64_t epochs, const data::Dataset& dataset,
                                const Validation* validation, const CallbackList& given) {
  const internal::SetForAWhile running(in_train);
  const CallbackList callbacks = given.OnRank(processes.rank());
  if (absl::Status checked = CheckTraining(epochs, dataset); !checked.ok()) return checked;
  const absl::StatusOr<std::int64_t> steps = CountSteps(dataset);
  if (!steps.ok()) return steps.status();
  if (absl::Status begun = BeginRun(epochs, dataset, *steps); !begun.ok()) return begun;
  step.cell()->SetTrain(true);

  RunContext context;
  context.epochs = epochs;
  context.steps_per_epoch = *steps;
  context.global_step = global_step;
  context.epoch = position.run_epoch;
  context.set_save([&model](const std::string& path) { return model.SaveCheckpoint(path); });
  const std::unique_ptr<TrainedModel> trained = MakeTrained(model, dataset, *steps);
  context.set_trained(trained.get());
  if (validation != nullptr) {
    context.set_eval_names(validation->names());
    context.set_smaller_is_better(validation->smaller_is_better());
  }
  TellScaling(context);
  {
    const internal::SetForAWhile resuming(may_resume);
    callbacks.OnTrainBegin(context);
  }
  absl::Status failure = context.failure();
  // A callback may have resumed a run.
  if (failure.ok()) failure = BeginUpdate();
  if (failure.ok()) failure = DeriveLossScale(model, dataset);
  if (failure.ok()) failure = ShareStart(model, epochs, dataset, validation);
  TellScaling(context);
  TrainingRun run(*this, dataset, validation, callbacks, context);
  while (position.run_epoch < epochs && failure.ok() && !context.stop_requested()) failure = run.Epoch();
  if (failure.ok() && run.micro_steps_left() > 0) {
    Say(absl::StrCat("remark: the last ", run.micro_steps_left(), " of ", options.accumulation_steps,
                     " batches of a step have no step yet: their gradients are kept for the next call of Train"));
  }
  if (failure.ok()) callbacks.OnTrainEnd(context);
  failure.Update(context.failure());
  return failure;
}

absl::Status Model::Train(std::int64_t epochs, const data::Dataset& dataset, const CallbackList& callbacks) {
  const std::scoped_lock lock(impl_->mutex);
  if (!impl_->status.ok()) return impl_->status;
  if (absl::Status free = impl_->CheckNoRun("Train"); !free.ok()) return free;
  return impl_->processes.Run([&] { return impl_->Train(*this, epochs, dataset, nullptr, callbacks); });
}

}  // namespace mpc
