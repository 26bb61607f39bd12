// What checkpoints keep of the callbacks of a run. Not part of the public API.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/train/callback.h"

namespace mpc::internal {

/// The states of callbacks, as CallbackList::SaveStates gives them: those of the run under way, else of the last one.
class CallbackStates {
 public:
  /// The callbacks of a run are asked as long as this lives, also where one throws.
  class Following {
   public:
    Following(CallbackStates& states, const CallbackList& callbacks) : states_(states) {
      states_.running_ = &callbacks;
    }
    ~Following() { states_.running_ = nullptr; }
    Following(const Following&) = delete;
    Following& operator=(const Following&) = delete;

   private:
    CallbackStates& states_;
  };

  /// Takes over what a checkpoint says. `continue_run`: the next run goes on there.
  void Take(TextMap states, bool continue_run) {
    last_ = std::move(states);
    continues_ = continue_run;
  }
  /// Where RunPosition::Begin has moved to the start of a run: this one goes on at `last_`, or none does.
  void BeginRun() { run_continues_ = std::exchange(continues_, false); }
  /// Gives callbacks, behind their OnTrainBegin, what the run goes on at, if it does. Errors:
  /// CallbackList::LoadStates'.
  absl::Status Begin(const CallbackList& callbacks) {
    return std::exchange(run_continues_, false) ? callbacks.LoadStates(last_) : absl::OkStatus();
  }
  TextMap Now() const { return running_ != nullptr ? running_->SaveStates() : last_; }
  /// Notes the states at the end of a run.
  void End() { last_ = Now(); }

 private:
  const CallbackList* running_ = nullptr;
  TextMap last_;
  bool continues_ = false;      ///< the next run goes on at `last_`
  bool run_continues_ = false;  ///< the run that has begun does
};

}  // namespace mpc::internal
