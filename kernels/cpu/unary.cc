// Element-wise operations of one shape, for any floating storage type and layout. They are relu, sigmoid, tanh, exp,
// log, sqrt, neg, add_scalar, mul_scalar, unscale and stop_gradient. Further relu_grad, sigmoid_grad, tanh_grad and
// sqrt_grad, and sum_n.
#include "kernels/scalar/unary.h"

#include <algorithm>
#include <cstring>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/elementwise_loops.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateScalar(const KernelSpec& spec) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype, count = spec.outputs[0].num_elements(),
                     value = static_cast<float>(spec.attributes.GetDouble("value"))](const KernelOperands& operands) {
    Map({in, operands.inputs[0]}, {out, operands.outputs[0]}, count, [value](float x) { return Op::Apply(x, value); });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateUnscale(const KernelSpec& spec) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
    const float inverse = 1.0f / *static_cast<const float*>(operands.inputs[1]);
    Map({in, operands.inputs[0]}, {out, operands.outputs[0]}, count, [inverse](float g) { return g * inverse; });
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateIdentity(const KernelSpec& spec) {
  return MakeKernel([bytes = spec.outputs[0].bytes()](const KernelOperands& operands) {
    if (operands.outputs[0] != operands.inputs[0]) std::memcpy(operands.outputs[0], operands.inputs[0], bytes);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateSumN(const KernelSpec& spec) {
  std::vector<DType> types;
  for (const TensorSpec& input : spec.inputs) types.push_back(input.dtype);
  return MakeKernel(
      [types, out = spec.outputs[0].dtype, count = spec.outputs[0].num_elements()](const KernelOperands& operands) {
        const Sink y{out, operands.outputs[0]};
        ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
          // The sum stays in a buffer until every operand is read: the result may be the storage of any of them.
          BlockBuffer sum, buffer;
          LoadFloats(types[0], operands.inputs[0], offset, size, sum.values);
          for (std::size_t operand = 1; operand < types.size(); ++operand) {
            const float* x = Source{types[operand], operands.inputs[operand]}.Load(offset, size, buffer.values);
#pragma omp simd
            for (std::int64_t i = 0; i < size; ++i) sum.values[i] += x[i];
          }
          StoreFloats(y.dtype, sum.values, y.data, offset, size);
        });
      });
}

}  // namespace

void RegisterUnary(Registry& registry) {
  registry.Add("relu", CreateUnary<scalar::ReluOp>, {{0, 0}});
  registry.Add("sigmoid", CreateUnary<scalar::SigmoidOp>, {{0, 0}});
  registry.Add("tanh", CreateUnary<scalar::TanhOp>, {{0, 0}});
  registry.Add("exp", CreateUnary<scalar::ExpOp>, {{0, 0}});
  registry.Add("log", CreateUnary<scalar::LogOp>, {{0, 0}});
  registry.Add("sqrt", CreateUnary<scalar::SqrtOp>, {{0, 0}});
  registry.Add("neg", CreateUnary<scalar::NegOp>, {{0, 0}});
  registry.Add("add_scalar", CreateScalar<scalar::AddScalarOp>, {{0, 0}});
  registry.Add("mul_scalar", CreateScalar<scalar::MulScalarOp>, {{0, 0}});
  registry.Add("unscale", CreateUnscale, {{0, 0}});
  registry.Add("stop_gradient", CreateIdentity, {{0, 0}});
  registry.Add("relu_grad", CreateUnaryGrad<scalar::ReluGradOp>, {{0, 0}, {0, 1}});
  registry.Add("sigmoid_grad", CreateUnaryGrad<scalar::SigmoidGradOp>, {{0, 0}, {0, 1}});
  registry.Add("tanh_grad", CreateUnaryGrad<scalar::TanhGradOp>, {{0, 0}, {0, 1}});
  registry.Add("sqrt_grad", CreateUnaryGrad<scalar::SqrtGradOp>, {{0, 0}, {0, 1}});
  registry.Add("sum_n", CreateSumN, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cpu
