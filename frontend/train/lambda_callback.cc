#include "frontend/train/lambda_callback.h"

#include <utility>

namespace mpc {
namespace {

void Call(const LambdaCallbackOptions::Hook& hook, RunContext& context) {
  if (hook != nullptr) hook(context);
}

}  // namespace

LambdaCallback::LambdaCallback(LambdaCallbackOptions options) : options_(std::move(options)) {}

bool LambdaCallback::NeedsState(const RunContext& context) const {
  return options_.needs_state != nullptr && options_.needs_state(context);
}

void LambdaCallback::OnTrainBegin(RunContext& context) { Call(options_.on_train_begin, context); }
void LambdaCallback::OnEpochBegin(RunContext& context) { Call(options_.on_train_epoch_begin, context); }
void LambdaCallback::OnStepBegin(RunContext& context) { Call(options_.on_train_step_begin, context); }
void LambdaCallback::OnStepEnd(RunContext& context) { Call(options_.on_train_step_end, context); }
void LambdaCallback::OnEvalBegin(RunContext& context) { Call(options_.on_eval_begin, context); }
void LambdaCallback::OnEvalEnd(RunContext& context) { Call(options_.on_eval_end, context); }
void LambdaCallback::OnEpochEnd(RunContext& context) { Call(options_.on_train_epoch_end, context); }
void LambdaCallback::OnTrainEnd(RunContext& context) { Call(options_.on_train_end, context); }

}  // namespace mpc
