// reduce_max, reduce_min and reduce_max_grad, for any floating storage type.
#include "kernels/cpu/blocks.h"
#include "kernels/cpu/fold_reduction.h"
#include "kernels/cpu/reduce_loops.h"
#include "kernels/cpu/registry.h"
#include "kernels/reduce_plan.h"
#include "kernels/scalar/reduction.h"

namespace mpc::cpu {
namespace {

// Operands dy and y have the results' shape, x and dx that of the forward operand. Each case counts the elements that
// equal the maximum or minimum, then writes their shares; none equals a NaN.
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
  registry.Add("reduce_max", CreateFold<scalar::MaximumOrNanOp>);
  registry.Add("reduce_min", CreateFold<scalar::MinimumOrNanOp>);
  registry.Add("reduce_max_grad", CreateReduceMaxGrad);
}

}  // namespace mpc::cpu
