// conv2d_statistics by this project's own kernels: conv2d, then one pass over what it has stored.
#include <algorithm>
#include <utility>

#include "kernels/convolution_part.h"
#include "kernels/cuda/channel_statistics.h"
#include "kernels/cuda/channels.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"

namespace mpc::cuda {

ChannelStatistics StatisticsOf(const KernelSpec& spec, const Shape& y, const KernelOperands& operands) {
  const auto result = [&](std::size_t i) { return spec.uses(i) ? static_cast<float*>(operands.outputs[i]) : nullptr; };
  const ChannelView view(y, spec.attributes.Get(attribute::kDataFormat), /*by_sample=*/false);
  return {result(1), result(2), result(3), static_cast<double>(view.count()), spec.attributes.Get(attribute::kEpsilon)};
}

namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads)
    FinishStatisticsKernel(const float* sum, const float* squares, std::int64_t channels,
                           ChannelStatistics statistics) {
  AwaitEarlierLaunches();
  const std::int64_t channel = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (channel >= channels) return;
  const double sums[2] = {sum[channel], squares[channel]};
  statistics(channel, sums);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateStatistics(const KernelSpec& spec, const KernelContext& context) {
  const absl::StatusOr<ConvolutionPart> part = ConvolutionPartOf(spec);
  if (!part.ok()) return part.status();
  // The choice that is kept names this kernel as a whole: no engine of a library may hide in it.
  KernelContext own = context;
  own.use_libraries = false;
  own.choice.clear();
  absl::StatusOr<std::unique_ptr<Kernel>> convolution = CreateKernel(part->convolution, own);
  if (!convolution.ok()) return convolution.status();
  const TensorSpec y = part->y();
  const ChannelView view(y.shape, spec.attributes.Get(attribute::kDataFormat), /*by_sample=*/false);
  const std::size_t kept = part->kept_bytes;
  const std::size_t scratch_bytes = std::max((*convolution)->workspace_bytes(), view.workspace_bytes<double>(2));
  auto run = [convolution = *std::move(convolution), view, spec, y, kept](const KernelOperands& operands,
                                                                          LaunchQueue& queue) -> absl::Status {
    void* const result = kept > 0 ? operands.workspace : operands.outputs[0];
    void* const scratch = static_cast<unsigned char*>(operands.workspace) + kept;
    if (absl::Status status = convolution->Enqueue({operands.inputs, &result, scratch}, queue); !status.ok()) {
      return status;
    }
    return ChannelReduce<double, 1, 2>(queue, view, {{{result, y.dtype}}}, MomentSums(),
                                       StatisticsOf(spec, y.shape, operands), scratch);
  };
  return MakeKernel(std::move(run), kept + scratch_bytes);
}

}  // namespace

absl::Status FinishStatistics(LaunchQueue& queue, const float* sum, const float* squares, std::int64_t channels,
                              const ChannelStatistics& statistics) {
  LaunchShape shape;
  shape.blocks_x = BlocksFor(channels, kThreads);
  shape.threads = kThreads;
  return launch(queue, &FinishStatisticsKernel, shape, sum, squares, channels, statistics);
}

void RegisterConvolutionStatistics(Registry& registry) { registry.Add("conv2d_statistics", CreateStatistics); }

}  // namespace mpc::cuda
