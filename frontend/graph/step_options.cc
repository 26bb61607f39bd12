#include "frontend/graph/step_options.h"

#include "frontend/graph/context_fields.h"

namespace mpc::internal {

void UseDevice(const std::string& device, StepOptions& options) {
  const ContextOptions& context = GetContext();
  // A Model of another device than the context's takes that device's defaults.
  const bool of_device = device == context.device;
  CopyOptions(context, of_device, options.compile);
  options.compile.device = device;
  if (of_device) options.load.graph = context.graph.value_or(true);
}

void ShareGradients(const AutoParallelOptions& parallel, std::int64_t processes, StepOptions& options) {
  options.compile.processes = processes;
  options.compile.bucket_mib = parallel.bucket_mib;
  options.compile.gradients_mean = parallel.gradients_mean;
  options.compile.communication_dtype = std::string(DTypeName(parallel.communication_dtype));
  options.weighs_elements = parallel.loss_weight == LossWeight::kElements;
}

}  // namespace mpc::internal
