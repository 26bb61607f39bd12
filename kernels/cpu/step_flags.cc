// merge_checks, all_of, any_of: they combine several finite checks or flags into one. All operands are scalars.
#include <algorithm>
#include <cstdint>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/state_update.h"

namespace mpc::cpu {
namespace {

absl::StatusOr<std::unique_ptr<Kernel>> CreateMergeChecks(const KernelSpec& spec) {
  return MakeKernel([count = spec.inputs.size()](const KernelOperands& operands) {
    std::int32_t largest = -1, smallest = -1;
    for (std::size_t i = 0; i < count; ++i) {
      largest = std::max(largest, ScalarOperand<std::int32_t>(operands, i));
      smallest = std::min(smallest, ScalarOperand<std::int32_t>(operands, i));
    }
    *static_cast<std::int32_t*>(operands.outputs[0]) = largest >= 0 ? largest : smallest;
  });
}

// Whether a flag equal to `kDecisive` is among the operands decides: none is false, some is true.
template <bool kDecisive>
absl::StatusOr<std::unique_ptr<Kernel>> CreateFlagReduction(const KernelSpec& spec) {
  return MakeKernel([count = spec.inputs.size()](const KernelOperands& operands) {
    bool found = false;
    for (std::size_t i = 0; i < count; ++i) found |= (ScalarOperand<std::uint8_t>(operands, i) != 0) == kDecisive;
    *static_cast<std::uint8_t*>(operands.outputs[0]) = found == kDecisive;
  });
}

}  // namespace

void RegisterStepFlags(Registry& registry) {
  registry.Add("merge_checks", CreateMergeChecks);
  registry.Add("all_of", CreateFlagReduction<false>);
  registry.Add("any_of", CreateFlagReduction<true>);
}

}  // namespace mpc::cpu
