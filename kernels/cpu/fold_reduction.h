// Reductions that combine elements by one of the operations of kernels/scalar/reduction.h: extrema and products.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/reduce_loops.h"
#include "kernels/cpu/registry.h"
#include "kernels/reduce_plan.h"

namespace mpc::cpu {

/// Values combined in eight lanes, so that the loop vectorises. The order follows from `count` alone.
template <typename Op>
float FoldOf(const float* values, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, Op::Identity());
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = Op::Combine(lanes[lane], values[i + lane]);
  }
  for (; i < count; ++i) lanes[0] = Op::Combine(lanes[0], values[i]);
  for (std::int64_t lane = 1; lane < kLanes; ++lane) lanes[0] = Op::Combine(lanes[0], lanes[lane]);
  return lanes[0];
}

/// The kernel of a reduction by `Op`, for any floating storage type.
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateFold(const KernelSpec& spec) {
  absl::StatusOr<ReducePlan> planned = PlanReduce(spec, 0);
  if (!planned.ok()) return planned.status();
  return MakeKernel([plan = *planned](const KernelOperands& operands) {
    const Source x{plan.in, operands.inputs[0]};
    const Sink y{plan.out, operands.outputs[0]};
    if (plan.inner_reduced) {
      ForEachRow(plan, [&](std::int64_t result, std::int64_t base) {
        BlockBuffer buffer;
        float folded = Op::Identity();
        ForEachReducedBlock(plan, base, [&](std::int64_t offset, std::int64_t size) {
          folded = Op::Combine(folded, FoldOf<Op>(x.Load(offset, size, buffer.values), size));
        });
        y.Set(result, folded);
      });
      return;
    }
    ForEachColumnBlock(plan, [&](std::int64_t result, std::int64_t base, std::int64_t size) {
      BlockBuffer folded, buffer;
      LoadFloats(x.dtype, x.data, base, size, folded.values);
      for (std::int64_t term = 1; term < plan.reduced.count(); ++term) {
        const float* values = x.Load(base + plan.reduced.Offset(term), size, buffer.values);
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) folded.values[i] = Op::Combine(folded.values[i], values[i]);
      }
      StoreFloats(y.dtype, folded.values, y.data, result, size);
    });
  });
}

}  // namespace mpc::cpu
