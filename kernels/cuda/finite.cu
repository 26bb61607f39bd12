// The operations between gradients and their optimizer: all_finite, global_norm, their parts for one gradient
// (check_finite, sum_of_squares), clip_by_norm. Also tensor_statistics.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/gradient_list.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/scalar/clip.h"

namespace mpc::cuda {
namespace {

using scalar::SumOp;

constexpr int kFinishThreads = 1024;

__device__ __forceinline__ bool IsFinite(float value) {
  return (std::bit_cast<std::uint32_t>(value) & 0x7f800000u) != 0x7f800000u;
}

struct SmallestOp {
  using Value = std::int32_t;
  __device__ static Value Identity() { return std::numeric_limits<std::int32_t>::max(); }
  __device__ static Value Combine(Value a, Value b) { return b < a ? b : a; }
};

/// Checks whether g / scale is finite for every g of a block. Leaves the position of the gradient if not, else
/// SmallestOp::Identity(). Booleans say it of their gradient.
struct FiniteBody {
  using Segment = Gradient;
  const float* scale;
  std::int32_t* of_block;

  __device__ void operator()(const Gradient& gradient, const SegmentShare& share) const {
    const Source g = gradient.source();
    const float inverse = 1.0f / *scale;
    int bad = 0;
    if (g.dtype == DType::kBool) {
      bad = *static_cast<const std::uint8_t*>(g.data) == 0 ? 1 : 0;
    } else {
      ForEachInShare(share, gradient.count, [&](auto width, std::int64_t index) {
        float values[width()];
        LoadElements(g, index, values);
        for (float value : values) bad |= IsFinite(value * inverse) ? 0 : 1;
      });
    }
    bad = __syncthreads_or(bad);
    if (threadIdx.x != 0) return;
    of_block[share.first_block + share.block] =
        bad != 0 ? static_cast<std::int32_t>(gradient.position) : SmallestOp::Identity();
  }
};

__device__ __forceinline__ double LoadSum(DType dtype, const void* data) {
  return dtype == DType::kF64 ? *static_cast<const double*>(data) : double{*static_cast<const float*>(data)};
}

/// Leaves the sum of squares of g / scale over a block, or of g where there is no scale. The sum is f64, where squares
/// are exact and do not overflow. A gradient that is already a sum of squares is left as it is.
struct SquaresBody {
  using Segment = Gradient;
  const float* scale;
  double* of_block;

  __device__ void operator()(const Gradient& gradient, const SegmentShare& share) const {
    const Source g = gradient.source();
    if (gradient.is_sum != 0) {
      if (threadIdx.x == 0) of_block[share.first_block] = LoadSum(g.dtype, g.data);
      return;
    }
    const float factor = scale == nullptr ? 1.0f : 1.0f / *scale;
    double sum = 0;
    ForEachInShare(share, gradient.count, [&](auto width, std::int64_t index) {
      float values[width()];
      LoadElements(g, index, values);
      for (float value : values) {
        const double unscaled = static_cast<double>(value * factor);
        sum += unscaled * unscaled;
      }
    });
    sum = BlockReduce<SumOp<double>, kTensorThreads>(sum);
    if (threadIdx.x == 0) of_block[share.first_block + share.block] = sum;
  }
};

/// One block: the first bad gradient, or the loss; results may be null.
__global__ void __launch_bounds__(kFinishThreads)
    AllFiniteKernel(const std::int32_t* of_block, std::int64_t blocks, Source loss, std::int64_t loss_count,
                    std::uint8_t* finite, std::int32_t* first_bad) {
  AwaitEarlierLaunches();
  std::int32_t smallest = SmallestOp::Identity();
  for (std::int64_t i = threadIdx.x; i < blocks; i += kFinishThreads) {
    smallest = SmallestOp::Combine(smallest, of_block[i]);
  }
  smallest = BlockReduce<SmallestOp, kFinishThreads>(smallest);
  int bad_loss = 0;
  for (std::int64_t i = threadIdx.x; i < loss_count; i += kFinishThreads) bad_loss |= IsFinite(loss.Load(i)) ? 0 : 1;
  bad_loss = __syncthreads_or(bad_loss);
  if (threadIdx.x != 0) return;
  if (smallest == SmallestOp::Identity()) smallest = bad_loss != 0 ? -2 : -1;
  if (finite != nullptr) *finite = smallest == -1 ? 1 : 0;
  if (first_bad != nullptr) *first_bad = smallest;
}

/// One block: whether none was bad.
__global__ void __launch_bounds__(kFinishThreads)
    CheckFiniteKernel(const std::int32_t* of_block, std::int64_t blocks, std::uint8_t* finite) {
  AwaitEarlierLaunches();
  int bad = 0;
  for (std::int64_t i = threadIdx.x; i < blocks; i += kFinishThreads) {
    bad |= of_block[i] == SmallestOp::Identity() ? 0 : 1;
  }
  bad = __syncthreads_or(bad);
  if (threadIdx.x == 0) *finite = bad == 0 ? 1 : 0;
}

/// One thread: whether an f64 scalar is finite, divided by the scale.
__global__ void CheckScalarKernel(const double* value, const float* scale, std::uint8_t* finite) {
  AwaitEarlierLaunches();
  const double unscaled = *value * (1.0 / static_cast<double>(*scale));
  *finite = unscaled - unscaled == 0 ? 1 : 0;
}

LaunchShape OneBlock() {
  LaunchShape shape;
  shape.threads = kFinishThreads;
  return shape;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAllFinite(const KernelSpec& spec, const KernelContext&) {
  const Gradients gradients(absl::MakeSpan(spec.inputs).subspan(2));
  const std::size_t workspace = static_cast<std::size_t>(gradients.blocks()) * sizeof(std::int32_t);
  return MakeKernel(
      [gradients, loss_type = spec.inputs[1].dtype, loss_count = spec.inputs[1].num_elements(),
       used = std::array<bool, 2>{spec.uses(0), spec.uses(1)}](const KernelOperands& operands, LaunchQueue& queue) {
        auto* of_block = static_cast<std::int32_t*>(operands.workspace);
        const auto* scale = static_cast<const float*>(operands.inputs[0]);
        const absl::Status status = gradients.Run(queue, operands.inputs + 2, of_block, [&](std::int32_t* results) {
          return FiniteBody{scale, results};
        });
        if (!status.ok()) return status;
        return launch(queue, &AllFiniteKernel, OneBlock(), of_block, gradients.blocks(),
                      Source{operands.inputs[1], loss_type}, loss_count,
                      used[0] ? static_cast<std::uint8_t*>(operands.outputs[0]) : nullptr,
                      used[1] ? static_cast<std::int32_t*>(operands.outputs[1]) : nullptr);
      },
      workspace);
}

// The operands are the gradient and the scale.
absl::StatusOr<std::unique_ptr<Kernel>> CreateCheckFinite(const KernelSpec& spec, const KernelContext&) {
  if (spec.inputs[0].dtype == DType::kF64) {
    return MakeKernel([](const KernelOperands& operands, LaunchQueue& queue) {
      LaunchShape shape;
      shape.threads = 1;
      return launch(queue, &CheckScalarKernel, shape, static_cast<const double*>(operands.inputs[0]),
                    static_cast<const float*>(operands.inputs[1]), static_cast<std::uint8_t*>(operands.outputs[0]));
    });
  }
  const Gradients gradient(absl::MakeSpan(spec.inputs).first(1));
  const std::size_t workspace = static_cast<std::size_t>(gradient.blocks()) * sizeof(std::int32_t);
  return MakeKernel(
      [gradient](const KernelOperands& operands, LaunchQueue& queue) {
        auto* of_block = static_cast<std::int32_t*>(operands.workspace);
        const auto* scale = static_cast<const float*>(operands.inputs[1]);
        const absl::Status status = gradient.Run(queue, operands.inputs, of_block, [&](std::int32_t* results) {
          return FiniteBody{scale, results};
        });
        if (!status.ok()) return status;
        return launch(queue, &CheckFiniteKernel, OneBlock(), of_block, gradient.blocks(),
                      static_cast<std::uint8_t*>(operands.outputs[0]));
      },
      workspace);
}

/// One block: the sum of squares, or its root.
__global__ void __launch_bounds__(kFinishThreads)
    SumSquaresKernel(const double* of_block, std::int64_t blocks, bool root, void* result, bool is_f64) {
  AwaitEarlierLaunches();
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < blocks; i += kFinishThreads) sum += of_block[i];
  sum = BlockReduce<SumOp<double>, kFinishThreads>(sum);
  if (threadIdx.x != 0) return;
  if (root) sum = std::sqrt(sum);
  if (is_f64) {
    *static_cast<double*>(result) = sum;
  } else {
    *static_cast<float*>(result) = static_cast<float>(sum);
  }
}

/// The sum of squares of the gradients among the operands, from `first` on. The operand `scale`, if there is one,
/// divides them.
struct SquaresOf {
  Gradients gradients;
  std::size_t first;
  std::optional<std::size_t> scale;
  bool root;
  bool is_f64;  ///< the result is f64; else f32

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(gradients.blocks()) * sizeof(double); }

  absl::Status operator()(const KernelOperands& operands, LaunchQueue& queue) const {
    auto* of_block = static_cast<double*>(operands.workspace);
    const auto* divisor = scale.has_value() ? static_cast<const float*>(operands.inputs[*scale]) : nullptr;
    const absl::Status status = gradients.Run(queue, operands.inputs + first, of_block, [divisor](double* results) {
      return SquaresBody{divisor, results};
    });
    if (!status.ok()) return status;
    return launch(queue, &SumSquaresKernel, OneBlock(), of_block, gradients.blocks(), root, operands.outputs[0],
                  is_f64);
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateGlobalNorm(const KernelSpec& spec, const KernelContext&) {
  const bool unscales = spec.attributes.GetBool("unscale");
  const std::size_t first = unscales ? 1 : 0;
  const auto sums = static_cast<std::size_t>(spec.attributes.GetInt("sums"));
  const SquaresOf squares{Gradients(absl::MakeSpan(spec.inputs).subspan(first), sums), first,
                          unscales ? std::optional<std::size_t>(0) : std::nullopt, /*root=*/true,
                          spec.outputs[0].dtype == DType::kF64};
  return MakeKernel(squares, squares.workspace_bytes());
}

// The operands are the gradient and, where it is scaled, the scale.
absl::StatusOr<std::unique_ptr<Kernel>> CreateSumOfSquares(const KernelSpec& spec, const KernelContext&) {
  const SquaresOf squares{Gradients(absl::MakeSpan(spec.inputs).first(1)), /*first=*/0,
                          spec.inputs.size() > 1 ? std::optional<std::size_t>(1) : std::nullopt, /*root=*/false,
                          spec.outputs[0].dtype == DType::kF64};
  return MakeKernel(squares, squares.workspace_bytes());
}

/// The norm lies in device memory.
struct Clip {
  scalar::NormOperand norm;
  float max_norm;
  __device__ float operator()(float gradient) const { return gradient * norm.Factor(max_norm); }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateClipByNorm(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype, count = spec.outputs[0].num_elements(),
                     norm_is_f64 = spec.inputs[1].dtype == DType::kF64,
                     max_norm = FloatAttribute(spec, "max_norm")](const KernelOperands& operands, LaunchQueue& queue) {
    const Clip clip{{operands.inputs[1], norm_is_f64}, max_norm};
    return Map<1>(queue, {{{operands.inputs[0], in}}, {operands.outputs[0], out}}, clip, count);
  });
}

constexpr int kBins = 256;  ///< exponents of f32

/// Results of tensor_statistics, null where not wanted; zero when the kernel begins. Counts and maxima do not depend on
/// the order in which blocks add theirs; magnitudes compare like their bits.
struct Statistics {
  std::int32_t* exponents;
  std::int32_t* zeros;
  std::uint32_t* largest;
};

__global__ void __launch_bounds__(kBins) StatisticsKernel(Source x, std::int64_t count, Statistics statistics) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(std::int32_t, bins, kBins);
  MPC_SHARED_ARRAY(std::int32_t, zeros, 1);
  MPC_SHARED_ARRAY(std::uint32_t, largest, 1);
  bins[threadIdx.x] = 0;
  if (threadIdx.x == 0) zeros[0] = 0;
  if (threadIdx.x == 0) largest[0] = 0;
  __syncthreads();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * kBins;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBins + threadIdx.x; i < count; i += threads) {
    const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x.Load(i)) & 0x7fffffffu;
    const std::uint32_t exponent = magnitude >> 23;
    atomicAdd(&bins[exponent], 1);
    if (magnitude == 0) atomicAdd(&zeros[0], 1);
    if (exponent != kBins - 1) atomicMax(&largest[0], magnitude);
  }
  __syncthreads();
  if (statistics.exponents != nullptr) atomicAdd(&statistics.exponents[threadIdx.x], bins[threadIdx.x]);
  if (threadIdx.x != 0) return;
  if (statistics.zeros != nullptr) atomicAdd(statistics.zeros, zeros[0]);
  if (statistics.largest != nullptr) atomicMax(statistics.largest, largest[0]);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateTensorStatistics(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel(
      [in = spec.inputs[0].dtype, count = spec.inputs[0].num_elements(),
       bytes = std::array<std::size_t, 3>{spec.outputs[0].bytes(), spec.outputs[1].bytes(), spec.outputs[2].bytes()},
       used = std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)}](const KernelOperands& operands,
                                                                             LaunchQueue& queue) -> absl::Status {
        for (std::size_t i = 0; i < used.size(); ++i) {
          if (!used[i]) continue;
          const absl::Status status = queue.Fill(operands.outputs[i], 0, bytes[i]);
          if (!status.ok()) return status;
        }
        const Statistics statistics{used[0] ? static_cast<std::int32_t*>(operands.outputs[0]) : nullptr,
                                    used[1] ? static_cast<std::int32_t*>(operands.outputs[1]) : nullptr,
                                    used[2] ? static_cast<std::uint32_t*>(operands.outputs[2]) : nullptr};
        constexpr std::int64_t kElementsPerThread = 16;
        LaunchShape shape;
        shape.threads = kBins;
        shape.blocks_x = std::min(BlocksFor(count, kBins * kElementsPerThread), 4096u);
        return launch(queue, &StatisticsKernel, shape, Source{operands.inputs[0], in}, count, statistics);
      });
}

}  // namespace

void RegisterFinite(Registry& registry) {
  registry.Add("all_finite", CreateAllFinite);
  registry.Add("check_finite", CreateCheckFinite);
  registry.Add("global_norm", CreateGlobalNorm);
  registry.Add("sum_of_squares", CreateSumOfSquares);
  registry.Add("clip_by_norm", CreateClipByNorm, {{0, 0}});
  registry.Add("tensor_statistics", CreateTensorStatistics);
}

}  // namespace mpc::cuda
