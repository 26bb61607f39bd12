// conv2d_grad_weight: a product over all result pixels. For few channels a thread keeps one term of the window for
// several results. Blocks take parts of the pixels. The sums of the parts are added in their order.
#include <algorithm>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/patch_product.h"
#include "kernels/cuda/split_product.h"
#include "kernels/cuda/staged_grad_weight.h"

namespace mpc::cuda {
namespace {

/// dweight[group * rows + row, column], rounded once.
struct WeightResult {
  Sink dweight;
  std::int64_t rows, columns;

  __device__ void Store(std::int64_t group, std::int64_t row, std::int64_t column, const float (&sums)[4],
                        int count) const {
    StoreSome(dweight, (group * rows + row) * columns + column, count, columns % 4 == 0, sums);
  }
};

/// Result pixels whose cotangents and windows a block of the direct kernel keeps at a time.
constexpr int kPositions = 64;
/// Positions whose elements of x a thread reads together.
constexpr int kTogether = 4;
constexpr int kMostThreads = 512;

/// How the direct form is dealt out. `lanes` threads take a term each. `slices` such sets of threads share a block's
/// positions.
struct DirectPlan {
  int results;  ///< results of a thread: 4, 8 or 16
  int chunks;   ///< chunks of `results` results that make up a group
  int lanes, slices;
  int parts;  ///< parts of the positions
  ProductShape product;

  int threads() const { return lanes * slices; }
  std::size_t shared_bytes() const {
    const std::size_t staged = kPositions * (sizeof(PatchOrigin) + static_cast<std::size_t>(results) * sizeof(float));
    return std::max(staged, static_cast<std::size_t>(threads() * results) * sizeof(float));
  }
  std::size_t workspace_bytes() const { return static_cast<std::size_t>(parts * product.elements()) * sizeof(float); }
};

/// True where there are fewer results than a tile has rows, and a thread for every term.
bool PrefersDirect(const PatchShape& shape) {
  constexpr int kFewResults = 16;
  return shape.results <= kFewResults && shape.terms() <= kMostThreads;
}

DirectPlan PlanDirect(const KernelContext& context, const PatchShape& shape, const ProductShape& product) {
  DirectPlan plan{};
  plan.results = shape.results <= 4 ? 4 : (shape.results <= 8 ? 8 : 16);
  plan.chunks = (shape.results + plan.results - 1) / plan.results;
  plan.lanes = (shape.terms() + kWarpSize - 1) / kWarpSize * kWarpSize;
  plan.slices = std::max(1, 256 / plan.lanes);
  plan.product = product;
  const std::int64_t sets = static_cast<std::int64_t>(shape.groups) * plan.chunks;
  const std::int64_t part_bytes = plan.product.elements() * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t wanted = (2 * static_cast<std::int64_t>(context.target.multiprocessors) + sets - 1) / sets;
  const std::int64_t useful = (static_cast<std::int64_t>(shape.positions()) + kPositions - 1) / kPositions;
  const std::int64_t fitting = static_cast<std::int64_t>(context.workspace_cap) / part_bytes;
  plan.parts = static_cast<int>(std::max<std::int64_t>(1, std::min({wanted, useful, fitting})));
  return plan;
}

/// partials[part, group, result, term], summed over the part's positions: slice by slice, then the slices in order.
template <int kResults>
__global__ void __launch_bounds__(kMostThreads, 1)
    DirectGradWeightKernel(PatchShape shape, DirectPlan plan, Source x, Source dy, float* partials) {
  AwaitEarlierLaunches();
  unsigned char* const shared = dynamic_shared<unsigned char>();
  auto* const origins = reinterpret_cast<PatchOrigin*>(shared);
  auto* const cotangents = reinterpret_cast<Quad*>(shared + kPositions * sizeof(PatchOrigin));  // [position][result]
  auto* const slice_sums = reinterpret_cast<float*>(shared);                                    // [slice][result][lane]
  const int thread = static_cast<int>(threadIdx.x);
  const int threads = static_cast<int>(blockDim.x);
  const int slice = thread / plan.lanes;
  const int lane = thread % plan.lanes;
  const PatchTerm term = PatchTerm::Create(shape, lane < shape.terms() ? lane : 0);
  const std::int64_t items = static_cast<std::int64_t>(plan.parts) * shape.groups * plan.chunks;
  for (std::int64_t item = blockIdx.x; item < items; item += gridDim.x) {
    // ---- The item's results and positions
    const int part = static_cast<int>(item % plan.parts);
    const int set = static_cast<int>(item / plan.parts);
    const int group = set / plan.chunks;
    const int first_result = set % plan.chunks * kResults;
    const int begin = static_cast<int>(static_cast<std::int64_t>(shape.positions()) * part / plan.parts);
    const int end = static_cast<int>(static_cast<std::int64_t>(shape.positions()) * (part + 1) / plan.parts);
    // ---- Sums of the slice, over blocks of positions
    float sums[kResults] = {};
    for (int start = begin; start < end; start += kPositions) {
      const int count = end - start < kPositions ? end - start : kPositions;
      __syncthreads();
      for (int p = thread; p < count; p += threads) origins[p] = PatchOrigin::Create(shape, group, start + p);
      for (int e = thread; e < kPositions * kResults; e += threads) {
        const int p = e % kPositions;
        const int r = first_result + e / kPositions;
        const int position = start + p;
        const std::int64_t at = position / shape.y.pixels * shape.y.batch_stride +
                                (static_cast<std::int64_t>(group) * shape.results + r) * shape.y.channel_stride +
                                position % shape.y.pixels * shape.y.pixel_stride;
        const bool inside = p < count && r < shape.results;
        reinterpret_cast<float*>(cotangents)[p * kResults + e / kPositions] = inside ? dy.Load(at) : 0.0f;
      }
      __syncthreads();
      for (int p = slice * kTogether; p < count; p += plan.slices * kTogether) {
        std::int64_t at[kTogether];
        float values[kTogether];
#pragma unroll
        for (int i = 0; i < kTogether; ++i) at[i] = p + i < count ? origins[p + i].OffsetAt(shape, term) : -1;
        LoadEach(x, at, values);
#pragma unroll
        for (int i = 0; i < kTogether; ++i) {
#pragma unroll
          for (int q = 0; q < kResults / 4; ++q) {
            const Quad factor = cotangents[(p + i) * (kResults / 4) + q];
#pragma unroll
            for (int j = 0; j < 4; ++j) sums[q * 4 + j] = std::fma(values[i], factor.values[j], sums[q * 4 + j]);
          }
        }
      }
    }
    // ---- Sums of all slices
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kResults; ++r) slice_sums[(slice * kResults + r) * plan.lanes + lane] = sums[r];
    __syncthreads();
    for (int e = thread; e < kResults * plan.lanes; e += threads) {
      const int r = first_result + e / plan.lanes;
      const int column = e % plan.lanes;
      if (r >= shape.results || column >= shape.terms()) continue;
      float sum = slice_sums[e];
      for (int s = 1; s < plan.slices; ++s) sum += slice_sums[s * kResults * plan.lanes + e];
      partials[((static_cast<std::int64_t>(part) * shape.groups + group) * shape.results + r) * shape.terms() +
               column] = sum;
    }
  }
}

absl::Status RunDirect(LaunchQueue& queue, const DirectPlan& plan, const PatchShape& shape, const Source& x,
                       const Source& dy, const WeightResult& result, void* workspace) {
  LaunchShape launch_shape;
  launch_shape.threads = static_cast<unsigned>(plan.threads());
  launch_shape.blocks_x = BlocksFor(static_cast<std::int64_t>(plan.parts) * shape.groups * plan.chunks, 1);
  launch_shape.shared_bytes = plan.shared_bytes();
  const auto kernel = plan.results == 4   ? &DirectGradWeightKernel<4>
                      : plan.results == 8 ? &DirectGradWeightKernel<8>
                                          : &DirectGradWeightKernel<16>;
  auto* const partials = static_cast<float*>(workspace);
  absl::Status status = launch(queue, kernel, launch_shape, shape, plan, x, dy, partials);
  if (!status.ok()) return status;
  return SumPartials(queue, partials, plan.parts, result, plan.product);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernel>> CreateConv2dGradWeight(const KernelSpec& spec, const KernelContext& context) {
  absl::StatusOr<ConvolutionShape> resolved =
      ResolveConvolution(spec, spec.inputs[0].shape, spec.outputs[0].shape, spec.inputs[1].shape);
  if (!resolved.ok()) return resolved.status();
  const PatchShape shape = PatchShape::Create(*resolved);
  const DType x_type = spec.inputs[0].dtype;
  const DType dy_type = spec.inputs[1].dtype;
  const WeightResult result{{nullptr, spec.outputs[0].dtype}, shape.results, shape.terms()};
  const auto bind = [result](const KernelOperands& operands) {
    WeightResult bound = result;
    bound.dweight.data = operands.outputs[0];
    return bound;
  };
  if (PrefersDirect(shape)) {
    const ProductShape product = {
        shape.groups, shape.results, shape.terms(), shape.positions(), 1, shape.positions(), 0, 0};
    if (const std::optional<StagedGradPlan> staged =
            PlanStagedGrad(context.target, context.workspace_cap, ForwardSum(*resolved), product)) {
      return MakeKernel(
          [=, plan = *staged](const KernelOperands& operands, LaunchQueue& queue) {
            return EnqueueStagedGrad(queue, plan, {operands.inputs[0], x_type}, {operands.inputs[1], dy_type},
                                     bind(operands), operands.workspace);
          },
          staged->workspace_bytes());
    }
    const DirectPlan plan = PlanDirect(context, shape, product);
    return MakeKernel(
        [=](const KernelOperands& operands, LaunchQueue& queue) {
          return RunDirect(queue, plan, shape, {operands.inputs[0], x_type}, {operands.inputs[1], dy_type},
                           bind(operands), operands.workspace);
        },
        plan.workspace_bytes());
  }
  const ProductPlan plan =
      PlanProduct(context.target, context.workspace_cap, shape.groups, shape.results, shape.terms(), shape.positions());
  const CotangentRows rows = CotangentRows::Create(shape, dy_type);
  return MakeKernel(
      [=](const KernelOperands& operands, LaunchQueue& queue) {
        CotangentRows left = rows;
        left.data.data = operands.inputs[1];
        const PatchColumns right{{operands.inputs[0], x_type}, shape};
        return EnqueueProduct(queue, plan, left, right, bind(operands), operands.workspace);
      },
      plan.workspace_bytes());
}

}  // namespace mpc::cuda
