// Element-wise operations of one shape: relu, sigmoid, tanh, exp, log, sqrt, neg, add_scalar, mul_scalar, unscale,
// stop_gradient; relu_grad, sigmoid_grad, tanh_grad, sqrt_grad; sum_n.
#include <algorithm>
#include <vector>

#include "absl/types/span.h"
#include "kernels/cuda/map.h"
#include "kernels/cuda/registry.h"
#include "kernels/scalar/unary.h"

namespace mpc::cuda {
namespace {

template <typename Op>
struct Unary {
  __device__ float operator()(float x) const { return Op::Apply(x); }
};

template <typename Op>
struct UnaryGrad {
  __device__ float operator()(float dy, float x) const { return Op::Apply(dy, x); }
};

template <typename Op>
struct WithScalar {
  float value;
  __device__ float operator()(float x) const { return Op::Apply(x, value); }
};

/// The scale lies in device memory: it changes from step to step.
struct Unscale {
  const float* scale;
  __device__ float operator()(float gradient) const { return gradient * (1.0f / *scale); }
};

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateUnary(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype, count = spec.outputs[0].num_elements()](
                        const KernelOperands& operands, LaunchQueue& queue) {
    return Map<1>(queue, {{{operands.inputs[0], in}}, {operands.outputs[0], out}}, Unary<Op>(), count);
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateUnaryGrad(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([dy = spec.inputs[0].dtype, x = spec.inputs[1].dtype, out = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    return Map<2>(queue, {{{operands.inputs[0], dy}, {operands.inputs[1], x}}, {operands.outputs[0], out}},
                  UnaryGrad<Op>(), count);
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateScalar(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype, count = spec.outputs[0].num_elements(),
                     apply = WithScalar<Op>{static_cast<float>(spec.attributes.GetDouble("value"))}](
                        const KernelOperands& operands, LaunchQueue& queue) {
    return Map<1>(queue, {{{operands.inputs[0], in}}, {operands.outputs[0], out}}, apply, count);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateUnscale(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype, count = spec.outputs[0].num_elements()](
                        const KernelOperands& operands, LaunchQueue& queue) {
    const Unscale apply{static_cast<const float*>(operands.inputs[1])};
    return Map<1>(queue, {{{operands.inputs[0], in}}, {operands.outputs[0], out}}, apply, count);
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateIdentity(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([bytes = spec.outputs[0].bytes()](const KernelOperands& operands, LaunchQueue& queue) {
    if (operands.outputs[0] == operands.inputs[0]) return absl::OkStatus();
    return queue.Copy(operands.outputs[0], operands.inputs[0], bytes);
  });
}

/// The terms that one launch adds.
template <int kCapacity>
struct SumTerms {
  static constexpr int kMost = kCapacity;
  Source terms[kCapacity];
  int count;
};

/// Most sums have few terms. Every launch copies the whole table, so that short sums have a short one.
using FewTerms = SumTerms<16>;
using ManyTerms =
    SumTerms<static_cast<int>((kMaxArgumentBytes - sizeof(Sink) - 2 * sizeof(std::int64_t)) / sizeof(Source))>;

/// y = sum of the terms, in their order, in f32, rounded once.
template <typename Terms>
__global__ void __launch_bounds__(kMapThreads, 4) SumNKernel(Terms sum, Sink y, std::int64_t count) {
  AwaitEarlierLaunches();
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t vectors = count / kVector;
  for (std::int64_t vector = thread; vector < vectors; vector += threads) {
    float total[kVector];
    sum.terms[0].LoadVector(vector * kVector, total);
    for (int term = 1; term < sum.count; ++term) {
      float x[kVector];
      sum.terms[term].LoadVector(vector * kVector, x);
      for (int i = 0; i < kVector; ++i) total[i] += x[i];
    }
    y.StoreVector(vector * kVector, total);
  }
  for (std::int64_t i = vectors * kVector + thread; i < count; i += threads) {
    float total = sum.terms[0].Load(i);
    for (int term = 1; term < sum.count; ++term) total += sum.terms[term].Load(i);
    y.Store(i, total);
  }
}

/// y = sum of at most Terms::kMost terms.
template <typename Terms>
absl::Status AddTerms(LaunchQueue& queue, absl::Span<const Source> terms, const Sink& y, std::int64_t count) {
  Terms sum{};
  sum.count = static_cast<int>(terms.size());
  std::copy(terms.begin(), terms.end(), sum.terms);
  LaunchShape shape;
  shape.threads = kMapThreads;
  shape.blocks_x = BlocksFor(count, kMapThreads * kVector);
  return launch(queue, &SumNKernel<Terms>, shape, sum, y, count);
}

/// A sum of more terms than a launch takes is a chain of launches. Each adds to the f32 sum of the earlier ones, so
/// that the bits are those of one launch. That sum lies in the workspace, or in an f32 result: no later term shares
/// storage with the result.
absl::StatusOr<std::unique_ptr<Kernel>> CreateSumN(const KernelSpec& spec, const KernelContext&) {
  std::vector<DType> types;
  for (const TensorSpec& input : spec.inputs) types.push_back(input.dtype);
  const DType out = spec.outputs[0].dtype;
  const std::int64_t count = spec.outputs[0].num_elements();
  const bool needs_workspace = types.size() > ManyTerms::kMost && out != DType::kF32;
  const auto run = [types, out, count](const KernelOperands& operands, LaunchQueue& queue) {
    std::vector<Source> terms;
    for (std::size_t i = 0; i < types.size(); ++i) terms.push_back({operands.inputs[i], types[i]});
    const Sink y{operands.outputs[0], out};
    if (terms.size() <= FewTerms::kMost) return AddTerms<FewTerms>(queue, terms, y, count);
    void* const partial = out == DType::kF32 ? operands.outputs[0] : operands.workspace;
    while (terms.size() > ManyTerms::kMost) {
      const absl::Span<const Source> first(terms.data(), ManyTerms::kMost);
      const absl::Status status = AddTerms<ManyTerms>(queue, first, Sink{partial, DType::kF32}, count);
      if (!status.ok()) return status;
      terms.erase(terms.begin(), terms.begin() + ManyTerms::kMost - 1);
      terms[0] = {partial, DType::kF32};
    }
    return AddTerms<ManyTerms>(queue, terms, y, count);
  };
  return MakeKernel(run, needs_workspace ? static_cast<std::size_t>(count) * sizeof(float) : 0);
}

}  // namespace

void RegisterUnary(Registry& registry) {
  using namespace scalar;
  registry.Add("relu", CreateUnary<ReluOp>, {{0, 0}});
  registry.Add("sigmoid", CreateUnary<SigmoidOp>, {{0, 0}});
  registry.Add("tanh", CreateUnary<TanhOp>, {{0, 0}});
  registry.Add("exp", CreateUnary<ExpOp>, {{0, 0}});
  registry.Add("log", CreateUnary<LogOp>, {{0, 0}});
  registry.Add("sqrt", CreateUnary<SqrtOp>, {{0, 0}});
  registry.Add("neg", CreateUnary<NegOp>, {{0, 0}});
  registry.Add("add_scalar", CreateScalar<AddScalarOp>, {{0, 0}});
  registry.Add("mul_scalar", CreateScalar<MulScalarOp>, {{0, 0}});
  registry.Add("unscale", CreateUnscale, {{0, 0}});
  registry.Add("stop_gradient", CreateIdentity, {{0, 0}});
  registry.Add("relu_grad", CreateUnaryGrad<ReluGradOp>, {{0, 0}, {0, 1}});
  registry.Add("sigmoid_grad", CreateUnaryGrad<SigmoidGradOp>, {{0, 0}, {0, 1}});
  registry.Add("tanh_grad", CreateUnaryGrad<TanhGradOp>, {{0, 0}, {0, 1}});
  registry.Add("sqrt_grad", CreateUnaryGrad<SqrtGradOp>, {{0, 0}, {0, 1}});
  registry.Add("sum_n", CreateSumN, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cuda
