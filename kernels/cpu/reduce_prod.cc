// reduce_prod and reduce_prod_grad, for any floating storage type. The order of the factors follows from the shape
// alone.
#include <algorithm>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/fold_reduction.h"
#include "kernels/cpu/reduce_loops.h"
#include "kernels/cpu/registry.h"
#include "kernels/reduce_plan.h"
#include "kernels/scalar/reduction.h"

namespace mpc::cpu {
namespace {

using scalar::FactorsOp;

// The operand dy has the results' shape, x and dx that of the forward operand.
struct ProductGradient {
  ReducePlan plan;
  Source dy, x;
  Sink dx;

  void Rows() const {
    ForEachRow(plan, [&](std::int64_t result, std::int64_t base) {
      BlockBuffer buffer, target_buffer;
      FactorsOp::Value factors = FactorsOp::Identity();
      ForEachReducedBlock(plan, base, [&](std::int64_t offset, std::int64_t size) {
        const float* values = x.Load(offset, size, buffer.values);
        for (std::int64_t i = 0; i < size; ++i) factors = FactorsOp::Combine(factors, FactorsOp::Of(values[i]));
      });
      const float cotangent = dy.ElementAt(result);
      ForEachReducedBlock(plan, base, [&](std::int64_t offset, std::int64_t size) {
        const float* values = x.Load(offset, size, buffer.values);
        float* target = dx.Target(offset, target_buffer.values);
        for (std::int64_t i = 0; i < size; ++i) target[i] = cotangent * FactorsOp::Without(factors, values[i]);
        dx.Commit(offset, size, target);
      });
    });
  }

  void Columns() const {
    const std::int64_t terms = plan.reduced.count();
    ForEachColumnBlock(plan, [&](std::int64_t result, std::int64_t base, std::int64_t size) {
      BlockBuffer dy_buffer, buffer, target_buffer;
      FactorsOp::Value factors[kBlock];
      std::fill_n(factors, size, FactorsOp::Identity());
      const float* cotangent = dy.Load(result, size, dy_buffer.values);
      for (std::int64_t term = 0; term < terms; ++term) {
        const float* values = x.Load(base + plan.reduced.Offset(term), size, buffer.values);
        for (std::int64_t i = 0; i < size; ++i) factors[i] = FactorsOp::Combine(factors[i], FactorsOp::Of(values[i]));
      }
      for (std::int64_t term = 0; term < terms; ++term) {
        const std::int64_t offset = base + plan.reduced.Offset(term);
        const float* values = x.Load(offset, size, buffer.values);
        float* target = dx.Target(offset, target_buffer.values);
        for (std::int64_t i = 0; i < size; ++i) target[i] = cotangent[i] * FactorsOp::Without(factors[i], values[i]);
        dx.Commit(offset, size, target);
      }
    });
  }
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateReduceProdGrad(const KernelSpec& spec) {
  absl::StatusOr<ReducePlan> planned = PlanReduce(spec, 1);
  if (!planned.ok()) return planned.status();
  return MakeKernel([plan = *planned, dy_type = spec.inputs[0].dtype,
                     dx_type = spec.outputs[0].dtype](const KernelOperands& operands) {
    const ProductGradient gradient{
        plan, {dy_type, operands.inputs[0]}, {plan.in, operands.inputs[1]}, {dx_type, operands.outputs[0]}};
    plan.inner_reduced ? gradient.Rows() : gradient.Columns();
  });
}

}  // namespace

void RegisterReduceProd(Registry& registry) {
  registry.Add("reduce_prod", CreateFold<scalar::ProductOp>);
  registry.Add("reduce_prod_grad", CreateReduceProdGrad);
}

}  // namespace mpc::cpu
