// Which call of a Model is under way. Not part of the public API.
#pragma once

#include "absl/status/status.h"

namespace mpc::internal {

/// A flag that is set for a while, also where a callback throws.
class SetForAWhile {
 public:
  explicit SetForAWhile(bool& flag) : flag_(flag) { flag = true; }
  ~SetForAWhile() { flag_ = false; }
  SetForAWhile(const SetForAWhile&) = delete;
  SetForAWhile& operator=(const SetForAWhile&) = delete;

 private:
  bool& flag_;
};

/// Whether Train or Fit runs, and what its callbacks may do. Callbacks call the Model in the thread that trains, which
/// holds the Model's mutex. So this keeps them from upsetting the run, and the mutex does not.
class RunPhase {
 public:
  /// Train or Fit runs as long as the result lives.
  SetForAWhile Train() { return SetForAWhile(trains_); }
  /// OnTrainBegin runs as long as the result lives: a callback may choose where the run begins.
  SetForAWhile Begin() { return SetForAWhile(begins_); }
  /// A callback loads a checkpoint by TrainedModel::Resume as long as the result lives.
  SetForAWhile Resume() { return SetForAWhile(resumes_); }

  bool may_resume() const { return begins_; }
  /// Errors (FAILED_PRECONDITION): Train is running, where a call of `what` would upset it.
  absl::Status CheckNoRun(const char* what) const;

 private:
  bool trains_ = false;
  bool begins_ = false;
  bool resumes_ = false;
};

}  // namespace mpc::internal
