// cumsum along any axis, for any floating storage type. A block scans a line in tiles. Where many lines lie beside each
// other, a thread takes a line instead. The order of each sum follows from the shape alone.
#include <cstdint>

#include "kernels/axis_lines.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"

namespace mpc::cuda {
namespace {

constexpr int kScanThreads = 256;

struct RunningSums {
  AxisLines lines;
  bool exclusive, reverse;

  /// Where the element lies that is added to the sum of a line in step `step`.
  __device__ __forceinline__ std::int64_t OffsetAt(std::int64_t line, std::int64_t step) const {
    return lines.Offset(line, reverse ? lines.extent - 1 - step : step);
  }
};

/// One thread a line.
__global__ void __launch_bounds__(kMapThreads) LineSumsKernel(RunningSums sums, Source x, Sink y) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t count = sums.lines.count();
  for (std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; line < count;
       line += threads) {
    float sum = 0.0f;
    for (std::int64_t step = 0; step < sums.lines.extent; ++step) {
      const std::int64_t at = sums.OffsetAt(line, step);
      const float before = sum;
      sum += x.Load(at);
      y.Store(at, sums.exclusive ? before : sum);
    }
  }
}

/// One block a line. In a tile each thread adds the sum that stands `reach` steps before its own, twice as far each
/// time (Hillis and Steele 1986).
__global__ void __launch_bounds__(kScanThreads) TileSumsKernel(RunningSums sums, Source x, Sink y) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(float, tile, kScanThreads);
  const int thread = static_cast<int>(threadIdx.x);
  for (std::int64_t line = blockIdx.x; line < sums.lines.count(); line += gridDim.x) {
    float carried = 0.0f;
    for (std::int64_t start = 0; start < sums.lines.extent; start += kScanThreads) {
      const std::int64_t step = start + thread;
      const bool inside = step < sums.lines.extent;
      tile[thread] = inside ? x.Load(sums.OffsetAt(line, step)) : 0.0f;
      __syncthreads();
      for (int reach = 1; reach < kScanThreads; reach *= 2) {
        const float before = thread >= reach ? tile[thread - reach] : 0.0f;
        __syncthreads();
        if (thread >= reach) tile[thread] += before;
        __syncthreads();
      }
      const float before = thread > 0 ? tile[thread - 1] : 0.0f;
      if (inside) y.Store(sums.OffsetAt(line, step), carried + (sums.exclusive ? before : tile[thread]));
      carried += tile[kScanThreads - 1];
      __syncthreads();
    }
  }
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateCumsum(const KernelSpec& spec, const KernelContext&) {
  const RunningSums sums{AxisLines::Of(spec.attributes, spec.inputs[0].shape), spec.attributes.GetBool("exclusive"),
                         spec.attributes.GetBool("reverse")};
  return MakeKernel([sums, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype](const KernelOperands& operands,
                                                                                   LaunchQueue& queue) {
    const Source x{operands.inputs[0], in};
    const Sink y{operands.outputs[0], out};
    // Threads beside each other read neighbours where lines lie beside each other, at least a warp of them.
    const bool beside = sums.lines.inner >= kWarpSize;
    LaunchShape shape;
    shape.threads = beside ? kMapThreads : kScanThreads;
    shape.blocks_x = BlocksFor(sums.lines.count(), beside ? kMapThreads : 1);
    return beside ? launch(queue, &LineSumsKernel, shape, sums, x, y)
                  : launch(queue, &TileSumsKernel, shape, sums, x, y);
  });
}

}  // namespace

void RegisterCumsum(Registry& registry) { registry.Add("cumsum", CreateCumsum, {{0, 0}}); }

}  // namespace mpc::cuda
