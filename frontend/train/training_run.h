// One call of Model::Train. Not part of the public API.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "frontend/train/model_impl.h"
#include "frontend/train/step_timing.h"

namespace mpc {

/// One call of Train. Steps are begun one by one, gathered until a launch is full, started, and finished: their records
/// are read and their last hooks called. A device that keeps the results of two launches is given the next launch
/// before those of the last one are read. So it never waits for the host. Elsewhere, and where a callback needs the
/// state, a step is finished before the next one begins.
class Model::Impl::TrainingRun {
 public:
  TrainingRun(Impl& model, const data::Dataset& dataset, const internal::Validation* validation,
              const CallbackList& callbacks, internal::HookWrites& hooks, RunContext& context)
      : model_(model),
        dataset_(dataset),
        validation_(validation),
        callbacks_(callbacks),
        hooks_(hooks),
        context_(context),
        options_(model.TrainOptions(dataset.column_names())),
        keeps_programs_(model.programs) {}
  ~TrainingRun() { model_.scalers.StopFollowing(); }
  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;

  /// What is left of the present epoch.
  absl::Status Epoch();
  /// Micro-steps since the last step whose optimizer acted.
  std::int64_t micro_steps_left() const { return micro_step_; }

 private:
  struct Step {
    internal::CompiledStep* program = nullptr;
    std::uint64_t number = 0;  ///< number of the step among the program's steps
    data::Row columns;
    std::int64_t step_in_epoch = 0;
    std::int64_t global_step = 0;            ///< global step after this step
    bool completes = true;                   ///< false: a micro-step before the last, after which no optimizer acts
    std::int64_t micro_step = 0;             ///< its number in the update, from 0
    internal::ActiveScalers::Writes writes;  ///< the host's, since the launch before it
    std::vector<Callback*> timed_for;
    StepTiming timing;

    /// The number of the step in its run, from 1. A micro-step is part of the step that comes next.
    std::int64_t number_in_run() const { return completes ? global_step : global_step + 1; }
  };

  /// Calls OnStepBegin; starts and finishes what can be.
  absl::Status Begin(Step step);
  /// The Program of a step on `row`; `is_last`: of an update, where its steps have two Programs.
  absl::StatusOr<internal::CompiledStep*> FindProgram(const data::Row& row, bool is_last);
  absl::StatusOr<internal::CompiledStep*> Compile(const data::Row& row, const internal::StepOptions& options);
  /// Whether a run may end behind the steps that were begun.
  bool MayEnd() const { return !model_.updates.are_whole() || model_.updates.CompleteBehind(begun_in_epoch_); }
  /// Whether a launch of `program` may be started before the last one is finished.
  bool MayRunAhead(const internal::CompiledStep& program) const;
  /// Whether it may at present. It may not in a run of overflows, which may end training, or be diagnosed, at any of
  /// its steps.
  bool RunsAhead(const internal::CompiledStep& program) const {
    return MayRunAhead(program) && !model_.scalers.in_overflow_run();
  }
  /// Numbers `step`, which comes next, in its update.
  absl::Status CountMicroStep(Step& step);
  /// Errors (FAILED_PRECONDITION): `step` goes on in an update of other losses.
  absl::Status CheckLosses(const Step& step);

  /// Starts what is gathered, then finishes the launches before it.
  absl::Status Launch();
  absl::Status RunTimed(Step step);
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
  const internal::Validation* validation_;  ///< null: nothing is evaluated
  const CallbackList& callbacks_;
  internal::HookWrites& hooks_;
  RunContext& context_;
  internal::StepOptions options_;
  internal::ProgramCache::Run keeps_programs_;

  // The Program of the last step serves the next one while input types and structure stand still.
  internal::CompiledStep* program_ = nullptr;
  internal::CompiledStep* before_last_ = nullptr;  ///< that of an update's steps before the last one; mostly `program_`
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

}  // namespace mpc
