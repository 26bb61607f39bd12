// What checkpoints keep of a run for its callbacks. Not part of the public API.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/train/callback.h"
#include "frontend/train/last_step.h"

namespace mpc::internal {

/// The states of callbacks, as CallbackList::SaveStates gives them, and what the last step has told them. They are
/// those of the run under way, else of the last one.
class CallbackStates {
 public:
  /// The callbacks of a run, and what they see, are asked as long as this lives, also where one throws.
  class Following {
   public:
    Following(CallbackStates& states, const CallbackList& callbacks, const RunContext& context) : states_(states) {
      states_.running_ = &callbacks;
      states_.context_ = &context;
    }
    ~Following() {
      states_.running_ = nullptr;
      states_.context_ = nullptr;
    }
    Following(const Following&) = delete;
    Following& operator=(const Following&) = delete;

   private:
    CallbackStates& states_;
  };

  /// Takes over what a checkpoint says. `continue_run`: the next run goes on there.
  void Take(const CheckpointMetadata& metadata, bool continue_run) {
    last_ = metadata.callbacks;
    last_step_ = metadata.last_step;
    continues_ = continue_run;
  }
  /// Where RunPosition::Begin has moved to the start of a run: this one goes on at `last_`, or none does.
  void BeginRun() { run_continues_ = std::exchange(continues_, false); }
  /// Gives callbacks, behind their OnTrainBegin, and `context` what the run goes on at, if it does. Errors: those of
  /// CallbackList::LoadStates and TellLastStep.
  absl::Status Begin(const CallbackList& callbacks, RunContext& context) {
    if (!std::exchange(run_continues_, false)) return absl::OkStatus();
    absl::Status status = callbacks.LoadStates(last_);
    status.Update(TellLastStep(last_step_, context));
    return status;
  }
  TextMap Now() const { return running_ != nullptr ? running_->SaveStates() : last_; }
  TextMap LastStep() const { return context_ != nullptr ? LastStepOf(*context_) : last_step_; }
  /// Notes both at the end of a run.
  void End() {
    last_ = Now();
    last_step_ = LastStep();
  }

 private:
  const CallbackList* running_ = nullptr;
  const RunContext* context_ = nullptr;  ///< null where `running_` is
  TextMap last_;
  TextMap last_step_;
  bool continues_ = false;      ///< the next run goes on at `last_`
  bool run_continues_ = false;  ///< the run that has begun does
};

}  // namespace mpc::internal
