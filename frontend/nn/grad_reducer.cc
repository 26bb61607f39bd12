#include "frontend/nn/grad_reducer.h"

#include "absl/strings/str_cat.h"
#include "frontend/distributed/auto_parallel_context.h"
#include "frontend/graph/collective_ops.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/step_scaler.h"
#include "frontend/graph/trace.h"

namespace mpc::nn {
namespace {

using mpc::internal::StepProcesses;
using mpc::internal::Trace;

/// Fails at the end of a step that does not check its gradients itself. Whether it does is not known before.
void ExpectChecksOfItsOwn(Trace& trace) {
  trace.locals().AtEnd([&trace] {
    if (!amp::internal::StepScaling::InTrace(trace).checking().empty()) return;
    trace.Fail(
        absl::StrCat("DistributedGradReducer exchanges gradients of ", trace.processes().count,
                     " processes, behind the check of the loss scale that wraps the step: each process would skip "
                     "other updates. SetAutoParallelContext({.parallel_mode = ParallelMode::kDataParallel}) lets them "
                     "decide together; an AmpScaler or a GradScaler of the step checks what the reducer returns"));
  });
}

/// Added in f32, whatever the gradient's type is.
Tensor Exchanged(const Tensor& gradient, ops::ReduceOp op) {
  const bool is_low = gradient.defined() && gradient.status().ok() && IsLowPrecision(gradient.dtype());
  if (!is_low) return ops::AllReduce(gradient, op);
  return cast(ops::AllReduce(cast(gradient, DType::kF32), op), gradient.dtype());
}

}  // namespace

std::vector<Tensor> DistributedGradReducer::operator()(const std::vector<Tensor>& gradients) const {
  Trace* trace = Trace::Current();
  const StepProcesses group = trace == nullptr ? StepProcesses() : trace->processes();
  if (group.shares_gradients) {
    if (mean_.value_or(group.gradients_mean) == group.gradients_mean) return gradients;
    const auto count = static_cast<double>(group.count);
    const double factor = group.gradients_mean ? count : 1 / count;
    return ops::Map([factor](const Tensor& gradient) { return gradient * factor; }, gradients);
  }
  if (group.is_wrapped && group.count > 1) ExpectChecksOfItsOwn(*trace);
  const bool mean = mean_.value_or(GetAutoParallelContext().gradients_mean);
  const ops::ReduceOp op = mean ? ops::ReduceOp::kMean : ops::ReduceOp::kSum;
  return ops::Map([op](const Tensor& gradient) { return Exchanged(gradient, op); }, gradients);
}

}  // namespace mpc::nn
