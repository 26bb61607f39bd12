// batch_norm_running_update: running statistics, from those of one batch or several. The rest of batch normalisation is
// generated.
#include <array>
#include <cstdint>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/scalar/running_statistics.h"

namespace mpc::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> CreateRunningUpdate(const KernelSpec& spec) {
  const auto run = [has_predicate = spec.inputs.size() > 4, used = std::array<bool, 2>{spec.uses(0), spec.uses(1)},
                    channels = spec.inputs[0].num_elements(), values = spec.inputs[2].num_elements(),
                    statistics = scalar::RunningStatistics(spec)](const KernelOperands& operands) {
    const bool update = !has_predicate || *static_cast<const std::uint8_t*>(operands.inputs[4]) != 0;
    for (int i = 0; i < 2; ++i) {
      if (!used[i]) continue;
      const float* running = static_cast<const float*>(operands.inputs[i]);
      const float* batch = static_cast<const float*>(operands.inputs[i + 2]);
      float* target = static_cast<float*>(operands.outputs[i]);
      if (!update && target == running) continue;
      for (std::int64_t c = 0; c < channels; ++c) {
        float moved = running[c];
        for (std::int64_t j = c; update && j < values; j += channels) moved = statistics.Apply(i, moved, batch[j]);
        target[c] = moved;
      }
    }
  };
  return MakeKernel(run);
}

}  // namespace

void RegisterBatchNorm(Registry& registry) {
  registry.Add("batch_norm_running_update", CreateRunningUpdate, {{0, 0}, {1, 1}});
}

}  // namespace mpc::cpu
