// accumulate_gradient, next_micro_step, increment: state that counts steps, and state that sums their gradients.
#include <cstdint>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/state_update.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/optimizer_rules.h"

namespace mpc::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> CreateAccumulateGradient(const KernelSpec& spec) {
  if (spec.inputs[0].dtype != DType::kF32 || spec.outputs[0].dtype != DType::kF32) return UnsupportedTypes(spec);
  return MakeKernel([gradient_type = spec.inputs[1].dtype, predicate = Predicate(spec, 3),
                     accumulate = scalar::AccumulateOp(spec),
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const auto* accumulator = static_cast<const float*>(operands.inputs[0]);
    auto* updated = static_cast<float*>(operands.outputs[0]);
    using Action = scalar::AccumulateOp::Action;
    const Action action =
        predicate.Holds(operands) ? accumulate.ActionIn(ScalarOperand<std::int32_t>(operands, 2)) : Action::kKeep;
    const bool keeps = action == Action::kKeep;
    if (keeps && updated == accumulator) return;
    const Source gradient{gradient_type, operands.inputs[1]};
    ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
      BlockBuffer buffer;
      const float* g = keeps ? nullptr : gradient.Load(offset, size, buffer.values);
      const float* old = accumulator + offset;
      float* sum = updated + offset;
      for (std::int64_t i = 0; i < size; ++i) {
        sum[i] = keeps ? old[i] : accumulate.Apply(action, old[i], g[i]);
      }
    });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateNextMicroStep(const KernelSpec& spec) {
  return MakeKernel([predicate = Predicate(spec, 1), count = static_cast<std::int32_t>(spec.attributes.Get(
                                                         attribute::kCount))](const KernelOperands& operands) {
    const auto micro_step = ScalarOperand<std::int32_t>(operands, 0);
    *static_cast<std::int32_t*>(operands.outputs[0]) =
        predicate.Holds(operands) ? (micro_step + 1) % count : micro_step;
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateIncrement(const KernelSpec& spec) {
  return MakeKernel([predicate = Predicate(spec, 1), by = static_cast<std::int32_t>(spec.attributes.Get(
                                                         attribute::kBy))](const KernelOperands& operands) {
    *static_cast<std::int32_t*>(operands.outputs[0]) =
        ScalarOperand<std::int32_t>(operands, 0) + (predicate.Holds(operands) ? by : 0);
  });
}

}  // namespace

void RegisterAccumulation(Registry& registry) {
  registry.Add("accumulate_gradient", CreateAccumulateGradient, {{0, 0}});
  registry.Add("next_micro_step", CreateNextMicroStep, {{0, 0}});
  registry.Add("increment", CreateIncrement, {{0, 0}});
}

}  // namespace mpc::cpu
