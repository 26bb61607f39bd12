// A callback made of functions.
#pragma once

#include <functional>

#include "frontend/train/callback.h"

namespace mpc {

/// Functions for the hooks of Callback; those left out do nothing. The names are MindSpore's.
struct LambdaCallbackOptions {
  using Hook = std::function<void(RunContext& context)>;

  Hook on_train_begin;
  Hook on_train_epoch_begin;
  Hook on_train_step_begin;
  Hook on_train_step_end;
  Hook on_eval_begin;
  Hook on_eval_end;
  Hook on_train_epoch_end;
  Hook on_train_end;
  /// See Callback::NeedsState: needed where `on_train_step_end` reads or writes the state of training. MindSpore has no
  /// counterpart.
  std::function<bool(const RunContext& context)> needs_state;
};

/// Runs functions as hooks: `LambdaCallback({.on_train_epoch_end = [](RunContext& context) { ... }})`.
class LambdaCallback : public Callback {
 public:
  explicit LambdaCallback(LambdaCallbackOptions options = {});

  bool NeedsState(const RunContext& context) const override;
  void OnTrainBegin(RunContext& context) override;
  void OnEpochBegin(RunContext& context) override;
  void OnStepBegin(RunContext& context) override;
  void OnStepEnd(RunContext& context) override;
  void OnEvalBegin(RunContext& context) override;
  void OnEvalEnd(RunContext& context) override;
  void OnEpochEnd(RunContext& context) override;
  void OnTrainEnd(RunContext& context) override;

 private:
  LambdaCallbackOptions options_;
};

}  // namespace mpc
