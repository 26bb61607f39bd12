// top_k, sort, which is top_k of all elements, and their gradient, for any floating storage type. A block sorts the
// keys of a line by Batcher's bitonic network (1968), in shared memory where they fit and in the workspace where not.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "kernels/axis_lines.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/scalar/sort_key.h"

namespace mpc::cuda {
namespace {

constexpr int kSortThreads = 256;
/// Keys of a line that shared memory holds.
constexpr std::int64_t kSharedKeys = 2048;
/// The most blocks that sort in the workspace, each of which has room for one line.
constexpr std::int64_t kMaxBlocks = 264;
/// Blocks that a launch has at most, along x and along y.
constexpr std::int64_t kMaxGridX = std::numeric_limits<std::int32_t>::max(), kMaxGridY = 65535;

struct TopK {
  AxisLines lines, results;
  bool descending;
  std::int64_t padded;  ///< keys of a line, a power of 2: those behind its own come last
};

/// Sorts `count` keys, a power of 2 up to 2^31, in ascending order.
__device__ __forceinline__ void SortKeys(std::uint64_t* keys, std::uint32_t count) {
  for (std::uint32_t run = 1; run < count; run *= 2) {
    for (std::uint32_t distance = run; distance > 0; distance /= 2) {
      for (std::uint32_t pair = threadIdx.x; pair < count / 2; pair += kSortThreads) {
        const std::uint32_t rest = pair & (distance - 1);
        const std::uint32_t low = (pair - rest) * 2 + rest;
        const bool ascends = (low & (run * 2)) == 0;
        const std::uint64_t first = keys[low], second = keys[low + distance];
        if ((first > second) == ascends) {
          keys[low] = second;
          keys[low + distance] = first;
        }
      }
      __syncthreads();
    }
  }
}

/// One line at a time of a block: blocks along x have neighbours, those along y have lines apart. `workspace` is null
/// where keys fit into shared memory; `values` and `indices` may be null.
__global__ void __launch_bounds__(kSortThreads)
    TopKKernel(TopK top_k, Source x, Sink values, std::int32_t* indices, std::uint64_t* workspace) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(std::uint64_t, shared_keys, kSharedKeys);
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.y) * gridDim.x + blockIdx.x;
  std::uint64_t* const keys = workspace == nullptr ? shared_keys : workspace + block * top_k.padded;
  const std::int64_t apart = top_k.lines.inner;
  for (std::int64_t outer = blockIdx.y; outer < top_k.lines.outer; outer += gridDim.y) {
    for (std::int64_t beside = blockIdx.x; beside < apart; beside += gridDim.x) {
      const std::int64_t first = outer * top_k.lines.extent * apart + beside;
      const std::int64_t first_result = outer * top_k.results.extent * apart + beside;
      for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x); i < top_k.padded; i += kSortThreads) {
        keys[i] =
            i < top_k.lines.extent ? scalar::SortKey(x.Load(first + i * apart), i, top_k.descending) : scalar::kLastKey;
      }
      __syncthreads();
      SortKeys(keys, static_cast<std::uint32_t>(top_k.padded));
      for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x); i < top_k.results.extent; i += kSortThreads) {
        const std::int64_t at = first_result + i * apart;
        const std::int32_t index = scalar::IndexOfKey(keys[i]);
        if (values.data != nullptr) values.Store(at, x.Load(first + index * apart));
        if (indices != nullptr) indices[at] = index;
      }
      __syncthreads();
    }
  }
}

/// Where lines do not fit shared memory, as many blocks sort as have room in the workspace, but one at least.
absl::StatusOr<std::unique_ptr<Kernel>> CreateOrder(const KernelSpec& spec, std::size_t workspace_cap,
                                                    std::int64_t count, bool descending) {
  TopK top_k;
  top_k.lines = AxisLines::Of(spec.attributes, spec.inputs[0].shape);
  top_k.results = top_k.lines;
  top_k.results.extent = count;
  top_k.descending = descending;
  top_k.padded = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(top_k.lines.extent, 2))));
  const bool shared = top_k.padded <= kSharedKeys;
  const std::size_t line_bytes = static_cast<std::size_t>(top_k.padded) * sizeof(std::uint64_t);
  const std::int64_t most =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(workspace_cap / line_bytes), 1, kMaxBlocks);
  const std::int64_t blocks_x = std::min(top_k.lines.inner, shared ? kMaxGridX : most);
  const std::int64_t blocks_y =
      std::min(top_k.lines.outer, shared ? kMaxGridY : most / std::max<std::int64_t>(blocks_x, 1));
  const auto run = [top_k, shared, blocks_x, blocks_y, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                    uses_values = spec.uses(0),
                    uses_indices = spec.uses(1)](const KernelOperands& operands, LaunchQueue& queue) {
    LaunchShape shape;
    shape.threads = kSortThreads;
    shape.blocks_x = static_cast<unsigned>(blocks_x);
    shape.blocks_y = static_cast<unsigned>(blocks_y);
    return launch(queue, &TopKKernel, shape, top_k, Source{operands.inputs[0], in},
                  Sink{uses_values ? operands.outputs[0] : nullptr, out},
                  uses_indices ? static_cast<std::int32_t*>(operands.outputs[1]) : nullptr,
                  shared ? nullptr : static_cast<std::uint64_t*>(operands.workspace));
  };
  return MakeKernel(run, shared ? 0 : static_cast<std::size_t>(blocks_x * blocks_y) * line_bytes);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSort(const KernelSpec& spec, const KernelContext& context) {
  return CreateOrder(spec, context.workspace_cap, AxisLines::Of(spec.attributes, spec.inputs[0].shape).extent,
                     spec.attributes.GetBool("descending"));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateTopK(const KernelSpec& spec, const KernelContext& context) {
  return CreateOrder(spec, context.workspace_cap, spec.attributes.GetInt("k"), !spec.attributes.GetBool("smallest"));
}

__global__ void __launch_bounds__(kMapThreads) ZeroKernel(Sink dx, std::int64_t count) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    dx.Store(i, 0.0f);
  }
}

/// One thread a cotangent. The indices of a line are distinct, so no two threads write one element.
__global__ void __launch_bounds__(kMapThreads)
    PlaceKernel(AxisLines from, AxisLines to, Source dy, const std::int32_t* indices, Sink dx) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t count = from.count() * from.extent;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += threads) {
    const std::int64_t line = i / (from.extent * from.inner) * from.inner + i % from.inner;
    const std::int64_t index = indices[i];
    if (index >= 0 && index < to.extent) dx.Store(to.Offset(line, index), dy.Load(i));
  }
}

/// One thread an element.
LaunchShape ElementShape(std::int64_t count) {
  LaunchShape shape;
  shape.threads = kMapThreads;
  shape.blocks_x = BlocksFor(count, kMapThreads);
  return shape;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateTopKGrad(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([from = AxisLines::Of(spec.attributes, spec.inputs[0].shape),
                     to = AxisLines::Of(spec.attributes, spec.outputs[0].shape), in = spec.inputs[0].dtype,
                     out = spec.outputs[0].dtype, cotangents = spec.inputs[0].num_elements(),
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    const Sink dx{operands.outputs[0], out};
    if (absl::Status status = launch(queue, &ZeroKernel, ElementShape(count), dx, count); !status.ok()) return status;
    return launch(queue, &PlaceKernel, ElementShape(cotangents), from, to, Source{operands.inputs[0], in},
                  static_cast<const std::int32_t*>(operands.inputs[1]), dx);
  });
}

}  // namespace

void RegisterTopK(Registry& registry) {
  registry.Add("sort", CreateSort);
  registry.Add("top_k", CreateTopK);
  registry.Add("top_k_grad", CreateTopKGrad);
}

}  // namespace mpc::cuda
