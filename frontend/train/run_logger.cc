#include "frontend/train/run_logger.h"

#include "absl/strings/str_cat.h"
#include "frontend/train/run_scalars.h"

namespace mpc {

void RunLogger::OnTrainBegin(RunContext& context) {
  last_step_ = context.global_step;
  last_logged_ = -1;
  if (log_steps_ < 0) {
    context.Fail(absl::InvalidArgumentError(absl::StrCat(name_, ": log_steps must not be negative, got ", log_steps_)));
  }
  if (context.failure().ok()) context.Fail(Open(context));
}

void RunLogger::OnStepEnd(RunContext& context) {
  // While gradients are accumulated the global step stands still.
  const bool stepped = context.global_step != last_step_;
  last_step_ = context.global_step;
  if (stepped && log_steps_ > 0 && context.global_step % log_steps_ == 0) Log(context);
}

void RunLogger::OnEpochEnd(RunContext& context) {
  if (last_logged_ != context.global_step || !context.eval_results().empty()) Log(context);
}

void RunLogger::Log(RunContext& context) {
  last_logged_ = context.global_step;
  if (context.failure().ok()) context.Fail(Write(context, internal::RunScalars(context)));
}

void RunLogger::OnTrainEnd(RunContext& context) { context.Fail(Close()); }

}  // namespace mpc
