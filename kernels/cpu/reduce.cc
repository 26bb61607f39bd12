// reduce_sum, reduce_mean and argmax, for any floating storage type. Sums accumulate in f32 in an order that depends on
// the shape alone. The cases of a ReducePlan are:
//   inner axis reduced: each result is a sum of contiguous segments (rows, everything, NCHW bias gradients).
//   [reduced, kept]:    column sums (bias gradients of matrices and of NHWC).
//   the rest:           columns, one reduced index at a time.
#include <cmath>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/column_sums.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/reduce_plan.h"

namespace mpc::cpu {
namespace {

// Inner axis reduced. Segments of at most a block are summed, `units` of them a result, in groups whose partial sums
// lie in the workspace as [result][group].
struct RowTiling {
  std::int64_t results, segments_per_row, units, units_per_group, groups;

  static RowTiling For(const ReducePlan& plan) {
    RowTiling tiling;
    tiling.results = plan.kept.count();
    tiling.segments_per_row = (plan.inner + kBlock - 1) / kBlock;
    tiling.units = plan.reduced.count() * tiling.segments_per_row;
    const std::int64_t unit_elements = std::min(plan.inner, kBlock);
    tiling.units_per_group = std::max((16 * kBlock + unit_elements - 1) / unit_elements, (tiling.units + 63) / 64);
    tiling.groups = (tiling.units + tiling.units_per_group - 1) / tiling.units_per_group;
    return tiling;
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateRowSums(const ReducePlan& plan) {
  const RowTiling tiling = RowTiling::For(plan);
  const auto run = [plan, tiling](const KernelOperands& operands) {
    const Source x{plan.in, operands.inputs[0]};
    const Sink y{plan.out, operands.outputs[0]};
    float* partial = static_cast<float*>(operands.workspace);
    // ---- The sum of a group of segments
    const auto sum_group = [&](std::int64_t task) {
      const std::int64_t base = plan.kept.Offset(task / tiling.groups);
      const std::int64_t begin = task % tiling.groups * tiling.units_per_group;
      BlockBuffer buffer;
      float sum = 0;
      for (std::int64_t unit = begin; unit < std::min(tiling.units, begin + tiling.units_per_group); ++unit) {
        const std::int64_t start = unit % tiling.segments_per_row * kBlock;
        const std::int64_t size = std::min(kBlock, plan.inner - start);
        const std::int64_t offset = base + plan.reduced.Offset(unit / tiling.segments_per_row) + start;
        sum += SumOf(x.Load(offset, size, buffer.values), size);
      }
      return sum;
    };
    // ---- Groups, in parallel
    const std::int64_t work = tiling.results * plan.reduced.count() * plan.inner;
    ParallelFor(tiling.results * tiling.groups, work, [&](std::int64_t task) {
      const float sum = sum_group(task);
      if (tiling.groups == 1) {
        y.Set(task, sum / plan.divisor);
      } else {
        partial[task] = sum;
      }
    });
    // ---- Sums of the groups, in order
    if (tiling.groups == 1) return;
    for (std::int64_t result = 0; result < tiling.results; ++result) {
      float sum = 0;
      for (std::int64_t group = 0; group < tiling.groups; ++group) sum += partial[result * tiling.groups + group];
      y.Set(result, sum / plan.divisor);
    }
  };
  const std::size_t floats = tiling.groups == 1 ? 0 : static_cast<std::size_t>(tiling.results * tiling.groups);
  return MakeKernel(run, floats * sizeof(float));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateColumnSums(const ReducePlan& plan) {
  const ColumnTiling tiling = ColumnTiling::For(plan.reduced.count(), plan.inner);
  const std::size_t partials = tiling.partial_count(1);
  const auto run = [plan, tiling, partials](const KernelOperands& operands) {
    const Source x{plan.in, operands.inputs[0]};
    float* partial = static_cast<float*>(operands.workspace);
    float* total = partial + partials;
    SumColumns<1>(tiling, partial, {total}, [&](std::int64_t) {
      return [&x](std::int64_t offset, std::int64_t size, float(*sums)[kBlock / 2]) {
        float buffer[kBlock / 2];
        const float* values = x.Load(offset, size, buffer);
        float* sum = sums[0];
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) sum[i] += values[i];
      };
    });
    for (std::int64_t i = 0; i < tiling.columns; ++i) total[i] /= plan.divisor;
    StoreFloats(plan.out, total, operands.outputs[0], 0, tiling.columns);
  };
  return MakeKernel(run, (partials + static_cast<std::size_t>(tiling.columns)) * sizeof(float));
}

// Inner axis kept, several kept axes: one block of columns of one outer index a task.
absl::StatusOr<std::unique_ptr<Kernel>> CreateStridedSums(const ReducePlan& plan) {
  const auto run = [plan](const KernelOperands& operands) {
    const Source x{plan.in, operands.inputs[0]};
    const std::int64_t blocks = (plan.inner + kBlock - 1) / kBlock;
    const std::int64_t outer = plan.kept.count();
    const std::int64_t terms = plan.reduced.count();
    ParallelFor(outer * blocks, outer * terms * plan.inner, [&](std::int64_t task) {
      const std::int64_t column = task % blocks * kBlock;
      const std::int64_t size = std::min(kBlock, plan.inner - column);
      const std::int64_t base = plan.kept.Offset(task / blocks) + column;
      BlockBuffer sum{}, buffer;
      for (std::int64_t term = 0; term < terms; ++term) {
        const float* values = x.Load(base + plan.reduced.Offset(term), size, buffer.values);
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) sum.values[i] += values[i];
      }
      for (std::int64_t i = 0; i < size; ++i) sum.values[i] /= plan.divisor;
      StoreFloats(plan.out, sum.values, operands.outputs[0], task / blocks * plan.inner + column, size);
    });
  };
  return MakeKernel(run);
}

template <bool kMean>
absl::StatusOr<std::unique_ptr<Kernel>> CreateReduce(const KernelSpec& spec) {
  absl::StatusOr<ReducePlan> plan = PlanReduce(spec, 0);
  if (!plan.ok()) return plan.status();
  if (!kMean) plan->divisor = 1;
  if (plan->inner_reduced) return CreateRowSums(*plan);
  if (plan->kept.rank == 0 && plan->reduced.rank == 1) return CreateColumnSums(*plan);
  return CreateStridedSums(*plan);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateArgmax(const KernelSpec& spec) {
  const Shape& shape = spec.inputs[0].shape;
  const std::int64_t rank = static_cast<std::int64_t>(shape.size());
  std::int64_t axis = spec.attributes.Get(attribute::kLastAxis);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || spec.outputs[0].dtype != DType::kI32) return UnsupportedTypes(spec);
  const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
  const std::int64_t stride = RowMajorStrides(shape)[static_cast<std::size_t>(axis)];
  return MakeKernel([extent, stride, in = spec.inputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const Source x{in, operands.inputs[0]};
    std::int32_t* y = static_cast<std::int32_t*>(operands.outputs[0]);
    ParallelFor(count, count * extent, [&](std::int64_t result) {
      const std::int64_t base = result / stride * stride * extent + result % stride;
      float largest = x.ElementAt(base);
      std::int32_t best = 0;
      for (std::int64_t k = 1; k < extent; ++k) {
        const float candidate = x.ElementAt(base + k * stride);
        if (!(candidate > largest) && !(std::isnan(candidate) && !std::isnan(largest))) continue;
        largest = candidate;
        best = static_cast<std::int32_t>(k);
      }
      y[result] = best;
    });
  });
}

}  // namespace

void RegisterReduce(Registry& registry) {
  registry.Add("reduce_sum", CreateReduce<false>);
  registry.Add("reduce_mean", CreateReduce<true>);
  registry.Add("argmax", CreateArgmax);
}

}  // namespace mpc::cpu
