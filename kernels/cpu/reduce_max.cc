// reduce_max and reduce_max_grad, for any floating storage type. A task handles the results of one run of the inner
// axis. That is one result where the axis is reduced, and a block of columns where it is kept.
#include <algorithm>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/reduce_plan.h"
#include "kernels/scalar/reduction.h"

namespace mpc::cpu {
namespace {

using scalar::Larger;

// The maximum is taken in eight lanes, so that the loop vectorises. It does not depend on the order.
float LargestOf(const float* values, std::int64_t count) {
  constexpr std::int64_t kLanes = 8;
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, values[0]);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = Larger(values[i + lane], lanes[lane]);
  }
  for (; i < count; ++i) lanes[0] = Larger(values[i], lanes[0]);
  for (std::int64_t lane = 1; lane < kLanes; ++lane) lanes[0] = Larger(lanes[lane], lanes[0]);
  return lanes[0];
}

// Calls visit(offset, size) for the blocks of the reduced elements that begin at `base`, inner axis included.
template <typename Visit>
void ForEachReducedBlock(const ReducePlan& plan, std::int64_t base, const Visit& visit) {
  const std::int64_t rows = plan.reduced.count();
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t begin = base + plan.reduced.Offset(row);
    for (std::int64_t start = 0; start < plan.inner; start += kBlock) {
      visit(begin + start, std::min(kBlock, plan.inner - start));
    }
  }
}

// Calls body(result, base, size) for each block of results that lie along the kept inner axis. The block has `size`
// results from `result` on. Their first elements begin at `base`.
template <typename Body>
void ForEachColumnBlock(const ReducePlan& plan, const Body& body) {
  const std::int64_t blocks = (plan.inner + kBlock - 1) / kBlock;
  const std::int64_t outer = plan.kept.count();
  ParallelFor(outer * blocks, outer * plan.reduced.count() * plan.inner, [&](std::int64_t task) {
    const std::int64_t column = task % blocks * kBlock;
    body(task / blocks * plan.inner + column, plan.kept.Offset(task / blocks) + column,
         std::min(kBlock, plan.inner - column));
  });
}

// Calls body(result, base) for each result where the inner axis is reduced.
template <typename Body>
void ForEachRow(const ReducePlan& plan, const Body& body) {
  const std::int64_t results = plan.kept.count();
  ParallelFor(results, results * plan.reduced.count() * plan.inner,
              [&](std::int64_t result) { body(result, plan.kept.Offset(result)); });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateReduceMax(const KernelSpec& spec) {
  absl::StatusOr<ReducePlan> planned = PlanReduce(spec, 0);
  if (!planned.ok()) return planned.status();
  return MakeKernel([plan = *planned](const KernelOperands& operands) {
    const Source x{plan.in, operands.inputs[0]};
    const Sink y{plan.out, operands.outputs[0]};
    if (plan.inner_reduced) {
      ForEachRow(plan, [&](std::int64_t result, std::int64_t base) {
        BlockBuffer buffer;
        float largest = x.ElementAt(base);
        ForEachReducedBlock(plan, base, [&](std::int64_t offset, std::int64_t size) {
          largest = Larger(LargestOf(x.Load(offset, size, buffer.values), size), largest);
        });
        y.Set(result, largest);
      });
      return;
    }
    ForEachColumnBlock(plan, [&](std::int64_t result, std::int64_t base, std::int64_t size) {
      BlockBuffer largest, buffer;
      LoadFloats(x.dtype, x.data, base, size, largest.values);
      for (std::int64_t term = 1; term < plan.reduced.count(); ++term) {
        const float* values = x.Load(base + plan.reduced.Offset(term), size, buffer.values);
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) largest.values[i] = Larger(values[i], largest.values[i]);
      }
      StoreFloats(y.dtype, largest.values, y.data, result, size);
    });
  });
}

// Operands dy and y have the results' shape, x and dx that of the forward operand. Each case counts the elements that
// equal the maximum, then writes their shares; none equals a NaN.
struct MaxGradient {
  ReducePlan plan;
  Source dy, x, y;
  Sink dx;

  void Rows() const {
    ForEachRow(plan, [&](std::int64_t result, std::int64_t base) {
      const float largest = y.ElementAt(result);
      BlockBuffer buffer, target_buffer;
      std::int64_t ties = 0;
      ForEachReducedBlock(plan, base, [&](std::int64_t offset, std::int64_t size) {
        const float* values = x.Load(offset, size, buffer.values);
#pragma omp simd reduction(+ : ties)
        for (std::int64_t i = 0; i < size; ++i) ties += values[i] == largest ? 1 : 0;
      });
      const float share = dy.ElementAt(result) / static_cast<float>(ties);
      ForEachReducedBlock(plan, base, [&](std::int64_t offset, std::int64_t size) {
        const float* values = x.Load(offset, size, buffer.values);
        float* target = dx.Target(offset, target_buffer.values);
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) target[i] = values[i] == largest ? share : 0.0f;
        dx.Commit(offset, size, target);
      });
    });
  }

  void Columns() const {
    const std::int64_t terms = plan.reduced.count();
    ForEachColumnBlock(plan, [&](std::int64_t result, std::int64_t base, std::int64_t size) {
      BlockBuffer y_buffer, dy_buffer, buffer, target_buffer, share{};
      const float* largest = y.Load(result, size, y_buffer.values);
      const float* cotangent = dy.Load(result, size, dy_buffer.values);
      for (std::int64_t term = 0; term < terms; ++term) {
        const float* values = x.Load(base + plan.reduced.Offset(term), size, buffer.values);
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) share.values[i] += values[i] == largest[i] ? 1.0f : 0.0f;
      }
      for (std::int64_t i = 0; i < size; ++i) share.values[i] = cotangent[i] / share.values[i];
      for (std::int64_t term = 0; term < terms; ++term) {
        const std::int64_t offset = base + plan.reduced.Offset(term);
        const float* values = x.Load(offset, size, buffer.values);
        float* target = dx.Target(offset, target_buffer.values);
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) target[i] = values[i] == largest[i] ? share.values[i] : 0.0f;
        dx.Commit(offset, size, target);
      }
    });
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateReduceMaxGrad(const KernelSpec& spec) {
  absl::StatusOr<ReducePlan> planned = PlanReduce(spec, 1);
  if (!planned.ok()) return planned.status();
  return MakeKernel([plan = *planned, dy_type = spec.inputs[0].dtype, y_type = spec.inputs[2].dtype,
                     dx_type = spec.outputs[0].dtype](const KernelOperands& operands) {
    const MaxGradient gradient{plan,
                               {dy_type, operands.inputs[0]},
                               {plan.in, operands.inputs[1]},
                               {y_type, operands.inputs[2]},
                               {dx_type, operands.outputs[0]}};
    plan.inner_reduced ? gradient.Rows() : gradient.Columns();
  });
}

}  // namespace

void RegisterReduceMax(Registry& registry) {
  registry.Add("reduce_max", CreateReduceMax);
  registry.Add("reduce_max_grad", CreateReduceMaxGrad);
}

}  // namespace mpc::cpu
