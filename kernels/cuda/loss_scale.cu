// scale_loss and the loss-scale state machine of update_loss_scale. Scale, counters and limits lie in device memory:
// the host reads none of them.
#include <cstdint>

#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/scalar/loss_scale.h"

namespace mpc::cuda {
namespace {

struct ScaleLoss {
  const float* scale;
  __device__ float operator()(float loss) const { return loss * *scale; }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateScaleLoss(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype, count = spec.outputs[0].num_elements()](
                        const KernelOperands& operands, LaunchQueue& queue) {
    const ScaleLoss apply{static_cast<const float*>(operands.inputs[1])};
    return Map<1>(queue, {{{operands.inputs[0], in}}, {operands.outputs[0], out}}, apply, count);
  });
}

/// The operands of update_loss_scale in their order, and its results; a null result is not wanted.
struct LossScaleOperands {
  const std::int32_t* first_bad;
  const float* scale;
  const std::int32_t* counters[4];
  const float* limits[4];  ///< growth, backoff, minimum, maximum
  const std::int32_t* interval;
  const std::int32_t* bad_limit;
  const std::int32_t* dynamic;
  const std::int32_t* skip;
  float* next_scale;
  std::int32_t* next_counters[4];
};

__global__ void UpdateLossScaleKernel(LossScaleOperands operands) {
  AwaitEarlierLaunches();
  if (threadIdx.x != 0 || blockIdx.x != 0) return;
  const scalar::LossScaleOptions options{*operands.limits[0],    *operands.limits[1], *operands.limits[2],
                                         *operands.limits[3],    *operands.interval,  *operands.bad_limit,
                                         *operands.dynamic != 0, *operands.skip != 0};
  const scalar::LossScaleState state{*operands.scale, *operands.counters[0], *operands.counters[1],
                                     *operands.counters[2], *operands.counters[3]};
  const scalar::LossScaleState next = scalar::NextState(*operands.first_bad, state, options);
  if (operands.next_scale != nullptr) *operands.next_scale = next.scale;
  if (operands.next_counters[0] != nullptr) *operands.next_counters[0] = next.good;
  if (operands.next_counters[1] != nullptr) *operands.next_counters[1] = next.bad;
  if (operands.next_counters[2] != nullptr) *operands.next_counters[2] = next.skipped;
  if (operands.next_counters[3] != nullptr) *operands.next_counters[3] = next.consecutive;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateUpdateLossScale(const KernelSpec& spec, const KernelContext&) {
  std::array<bool, 5> used;
  for (std::size_t i = 0; i < used.size(); ++i) used[i] = spec.uses(i);
  return MakeKernel([used](const KernelOperands& operands, LaunchQueue& queue) {
    const auto real = [&](std::size_t i) { return static_cast<const float*>(operands.inputs[i]); };
    const auto integer = [&](std::size_t i) { return static_cast<const std::int32_t*>(operands.inputs[i]); };
    LossScaleOperands bound{};
    bound.first_bad = integer(0);
    bound.scale = real(1);
    if (used[0]) bound.next_scale = static_cast<float*>(operands.outputs[0]);
    for (std::size_t i = 0; i < 4; ++i) {
      bound.counters[i] = integer(2 + i);
      bound.limits[i] = real(6 + i);
      if (used[1 + i]) bound.next_counters[i] = static_cast<std::int32_t*>(operands.outputs[1 + i]);
    }
    bound.interval = integer(10);
    bound.bad_limit = integer(11);
    bound.dynamic = integer(12);
    bound.skip = integer(13);
    LaunchShape shape;
    shape.threads = 1;
    return launch(queue, &UpdateLossScaleKernel, shape, bound);
  });
}

}  // namespace

void RegisterLossScale(Registry& registry) {
  registry.Add("scale_loss", CreateScaleLoss, {{0, 0}});
  registry.Add("update_loss_scale", CreateUpdateLossScale, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}});
}

}  // namespace mpc::cuda
