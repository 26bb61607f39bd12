#include "frontend/graph/step_options.h"

#include "frontend/graph/context.h"

namespace mpc::internal {

void UseDevice(const std::string& device, StepOptions& options) {
  const ContextOptions& context = GetContext();
  options.compile.device = device;
  options.compile.fusion = context.fusion;
  options.compile.pad_classes = context.pad_classes;
  options.compile.memory_budget = context.memory_budget;
  options.compile.head_chunks = context.head_chunks;
  // A Model of another device than the context's takes that device's defaults.
  if (device != context.device) return;
  options.compile.arch = context.arch;
  options.compile.plan.tune = context.tune;
  options.compile.plan.choice_cache = context.choice_cache;
  options.compile.plan.allow_tf32 = context.allow_tf32;
  options.compile.plan.allow_winograd = context.allow_winograd;
  options.compile.conv_statistics = context.allow_conv_statistics;
  options.load.graph = context.graph.value_or(true);
}

void ShareGradients(const AutoParallelOptions& parallel, std::int64_t processes, StepOptions& options) {
  options.compile.processes = processes;
  options.compile.bucket_mib = parallel.bucket_mib;
  options.compile.gradients_mean = parallel.gradients_mean;
  options.compile.communication_dtype = std::string(DTypeName(parallel.communication_dtype));
  options.weighs_elements = parallel.loss_weight == LossWeight::kElements;
}

}  // namespace mpc::internal
