#include "frontend/train/precision_decision.h"

namespace mpc::internal {

void PrecisionDecision::Keep(const compiler::PrecisionMap& decided, bool training) {
  if (!training && is_trained_) return;
  // Without a training graph the new assignment only adds to the old one.
  if (training && decided != slots_) ++version_;
  slots_ = decided;
  is_trained_ |= training && !decided.empty();
}

void PrecisionDecision::ApplyTo(compiler::CompileOptions& options, bool training) const {
  if (is_trained_ || !training) options.assignment = slots_;
}

}  // namespace mpc::internal
