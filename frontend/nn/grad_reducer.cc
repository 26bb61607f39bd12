#include "frontend/nn/grad_reducer.h"

#include "absl/strings/str_cat.h"
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

}  // namespace

std::vector<Tensor> DistributedGradReducer::operator()(const std::vector<Tensor>& gradients) const {
  Trace* trace = Trace::Current();
  const StepProcesses group = trace == nullptr ? StepProcesses() : trace->processes();
  if (group.averages_gradients) {
    if (mean_) return gradients;
    const auto count = static_cast<double>(group.count);
    return ops::Map([count](const Tensor& mean) { return mean * count; }, gradients);
  }
  if (group.is_wrapped && group.count > 1) ExpectChecksOfItsOwn(*trace);
  return ops::Map([this](const Tensor& gradient) { return Reduced(gradient); }, gradients);
}

Tensor DistributedGradReducer::Reduced(const Tensor& gradient) const {
  const ops::ReduceOp op = mean_ ? ops::ReduceOp::kMean : ops::ReduceOp::kSum;
  const bool is_low = gradient.defined() && gradient.status().ok() && IsLowPrecision(gradient.dtype());
  if (!is_low) return ops::AllReduce(gradient, op);
  return cast(ops::AllReduce(cast(gradient, DType::kF32), op), gradient.dtype());
}

}  // namespace mpc::nn
