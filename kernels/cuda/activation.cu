// Element-wise functions and their derivatives: abs, floor, square, log1p, sin, cos, silu, hard_swish, erf, gelu,
// leaky_relu, pow, clamp, prelu, and the gradient operations (dy, x).
#include <type_traits>

#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/activation.h"

namespace mpc::cuda {
namespace {

template <typename Op>
concept HasFastRange = requires {
  Op::kFastLimit;
};

/// Applies Op to one or two elements, the last of which is x.
template <typename Op>
struct Activation {
  Op op;
  __device__ float operator()(float x) const {
    if constexpr (HasFastRange<Op>) {
      if (fabsf(x) > Op::kFastLimit) return op.Slow(x);
    }
    return op.Apply(x);
  }
  __device__ float operator()(float dy, float x) const {
    if constexpr (HasFastRange<Op>) {
      if (fabsf(x) > Op::kFastLimit) return op.Slow(dy, x);
    }
    return op.Apply(dy, x);
  }
};

template <typename Op>
Activation<Op> FromAttributes(const Attributes& attributes) {
  if constexpr (std::is_constructible_v<Op, const Attributes&>) {
    return {Op(attributes)};
  } else {
    return {Op{}};
  }
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateForward(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([in = spec.inputs[0].dtype, out = spec.outputs[0].dtype, count = spec.outputs[0].num_elements(),
                     apply = FromAttributes<Op>(spec.attributes)](const KernelOperands& operands, LaunchQueue& queue) {
    return Map<1>(queue, {{{operands.inputs[0], in}}, {operands.outputs[0], out}}, apply, count);
  });
}

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGradient(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([dy = spec.inputs[0].dtype, x = spec.inputs[1].dtype, out = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements(),
                     apply = FromAttributes<Op>(spec.attributes)](const KernelOperands& operands, LaunchQueue& queue) {
    return Map<2>(queue, {{{operands.inputs[0], dy}, {operands.inputs[1], x}}, {operands.outputs[0], out}}, apply,
                  count);
  });
}

bool IsTanhForm(const KernelSpec& spec) { return spec.attributes.Get(attribute::kApproximate) == Approximation::kTanh; }

absl::StatusOr<std::unique_ptr<Kernel>> CreateGelu(const KernelSpec& spec, const KernelContext& context) {
  return IsTanhForm(spec) ? CreateForward<scalar::GeluTanhOp>(spec, context)
                          : CreateForward<scalar::GeluOp>(spec, context);
}
absl::StatusOr<std::unique_ptr<Kernel>> CreateGeluGrad(const KernelSpec& spec, const KernelContext& context) {
  return IsTanhForm(spec) ? CreateGradient<scalar::GeluTanhGradOp>(spec, context)
                          : CreateGradient<scalar::GeluGradOp>(spec, context);
}

bool ChannelsLast(const KernelSpec& spec, const Shape& x) {
  return x.size() == 4 && spec.attributes.Get(attribute::kDataFormat) == DataFormat::kNHWC;
}

/// One slope a channel or one for all, stretched to the shape of x.
absl::StatusOr<BroadcastMap> SlopeMap(const KernelSpec& spec, const Shape& x, Shape slope) {
  if (NumElements(slope) == 1) {
    slope.clear();
  } else if (!ChannelsLast(spec, x)) {
    slope.resize(x.size() - 1, 1);  // [C, 1, ...] stands beside axis 1
  }
  return BroadcastMap::Create(slope, x);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreatePrelu(const KernelSpec& spec, const KernelContext&) {
  absl::StatusOr<BroadcastMap> slope = SlopeMap(spec, spec.inputs[0].shape, spec.inputs[1].shape);
  if (!slope.ok()) return slope.status();
  return MakeKernel([slope = *slope, x = spec.inputs[0].dtype, alpha = spec.inputs[1].dtype,
                     out = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    const BroadcastOperands<2> bound{{{{operands.inputs[0], x}, {}}, {{operands.inputs[1], alpha}, slope}},
                                     {operands.outputs[0], out}};
    return MapElements(queue, bound, Elementwise<scalar::PreluOp>(), count);
  });
}

struct PreluGrad {
  __device__ float operator()(float dy, float x, float alpha) const { return x > 0.0f ? dy : alpha * dy; }
};

constexpr int kSlopeThreads = 256;

/// The tensor as [outer, slopes, inner], and how blocks share the sums over outer and inner. A block adds the elements
/// [group * per_group, ...) of `columns` slopes. Thread t adds those of slope t % columns.
struct SlopeSums {
  std::int64_t outer, slopes, inner;
  int columns;
  std::int64_t groups, per_group;
};

SlopeSums PlanSlopeSums(const KernelSpec& spec, const Shape& x, std::int64_t slopes) {
  const std::int64_t count = NumElements(x);
  SlopeSums plan{1, slopes, count / std::max<std::int64_t>(slopes, 1), 1, 1, 0};
  if (slopes > 1) {
    plan.outer = ChannelsLast(spec, x) ? plan.inner : x[0];
    plan.inner = plan.outer == 0 ? 0 : plan.inner / plan.outer;
    if (plan.inner == 1) plan.columns = 32;
  }
  const std::int64_t elements = plan.outer * plan.inner;
  // A thread adds sixteen elements at least; more than sixty-four partial sums gain nothing.
  const std::int64_t least = kSlopeThreads / plan.columns * 16;
  plan.groups = std::clamp<std::int64_t>(elements / least, 1, 64);
  plan.per_group = (elements + plan.groups - 1) / plan.groups;
  return plan;
}

/// partial[group, slope]: the order of the sums depends on the shape alone.
__global__ void __launch_bounds__(kSlopeThreads) SlopeSumsKernel(SlopeSums plan, Source dy, Source x, float* partial) {
  AwaitEarlierLaunches();
  MPC_SHARED_ARRAY(float, sums, kSlopeThreads);
  const int thread = static_cast<int>(threadIdx.x);
  const int lanes = kSlopeThreads / plan.columns;
  const std::int64_t slope = static_cast<std::int64_t>(blockIdx.x) * plan.columns + thread % plan.columns;
  const std::int64_t group = blockIdx.y;
  const std::int64_t elements = plan.outer * plan.inner;
  const std::int64_t begin = group * plan.per_group;
  const std::int64_t end = begin + plan.per_group < elements ? begin + plan.per_group : elements;
  float sum = 0.0f;
  if (slope < plan.slopes) {
    for (std::int64_t i = begin + thread / plan.columns; i < end; i += lanes) {
      const std::int64_t outer = plan.outer == 1 ? 0 : i / plan.inner;
      const std::int64_t at = (outer * plan.slopes + slope) * plan.inner + (i - outer * plan.inner);
      sum += scalar::PreluSlopeGradOp::Apply(dy.Load(at), x.Load(at));
    }
  }
  sums[thread] = sum;
  __syncthreads();
  for (int half = lanes / 2; half > 0; half /= 2) {
    if (thread < half * plan.columns) sums[thread] += sums[thread + half * plan.columns];
    __syncthreads();
  }
  if (thread < plan.columns && slope < plan.slopes) partial[group * plan.slopes + slope] = sums[thread];
}

__global__ void __launch_bounds__(kSlopeThreads) SlopeTotalsKernel(SlopeSums plan, const float* partial, Sink dalpha) {
  AwaitEarlierLaunches();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t slope = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; slope < plan.slopes;
       slope += threads) {
    float sum = 0.0f;
    for (std::int64_t group = 0; group < plan.groups; ++group) sum += partial[group * plan.slopes + slope];
    dalpha.Store(slope, sum);
  }
}

absl::Status SumSlopes(LaunchQueue& queue, const SlopeSums& plan, const Source& dy, const Source& x, float* partial,
                       const Sink& dalpha) {
  LaunchShape shape;
  shape.threads = kSlopeThreads;
  shape.blocks_x = BlocksFor(plan.slopes, plan.columns);
  shape.blocks_y = static_cast<unsigned>(plan.groups);
  if (absl::Status status = launch(queue, &SlopeSumsKernel, shape, plan, dy, x, partial); !status.ok()) return status;
  shape.blocks_x = BlocksFor(plan.slopes, kSlopeThreads);
  shape.blocks_y = 1;
  return launch(queue, &SlopeTotalsKernel, shape, plan, partial, dalpha);
}

/// The operands are dy, x and alpha.
absl::StatusOr<std::unique_ptr<Kernel>> CreatePreluGrad(const KernelSpec& spec, const KernelContext&) {
  const Shape& shape = spec.inputs[1].shape;
  absl::StatusOr<BroadcastMap> slope = SlopeMap(spec, shape, spec.inputs[2].shape);
  if (!slope.ok()) return slope.status();
  const SlopeSums plan = PlanSlopeSums(spec, shape, spec.inputs[2].num_elements());
  const auto run = [slope = *slope, plan, dy_type = spec.inputs[0].dtype, x_type = spec.inputs[1].dtype,
                    alpha_type = spec.inputs[2].dtype, dx_type = spec.outputs[0].dtype,
                    dalpha_type = spec.outputs[1].dtype, uses_dx = spec.uses(0), uses_dalpha = spec.uses(1),
                    count = NumElements(shape)](const KernelOperands& operands, LaunchQueue& queue) {
    const Source dy{operands.inputs[0], dy_type}, x{operands.inputs[1], x_type};
    // The sums come before dx, which may lie where dy or x does.
    if (uses_dalpha) {
      absl::Status status =
          SumSlopes(queue, plan, dy, x, static_cast<float*>(operands.workspace), {operands.outputs[1], dalpha_type});
      if (!status.ok()) return status;
    }
    if (!uses_dx) return absl::OkStatus();
    const BroadcastOperands<3> bound{{{dy, {}}, {x, {}}, {{operands.inputs[2], alpha_type}, slope}},
                                     {operands.outputs[0], dx_type}};
    return MapElements(queue, bound, PreluGrad(), count);
  };
  return MakeKernel(run, static_cast<std::size_t>(plan.groups * plan.slopes) * sizeof(float));
}

struct Entry {
  const char* name;
  Factory factory;
};
constexpr Entry kForward[] = {
    {"abs", CreateForward<scalar::AbsOp>},
    {"floor", CreateForward<scalar::FloorOp>},
    {"square", CreateForward<scalar::SquareOp>},
    {"log1p", CreateForward<scalar::Log1pOp>},
    {"sin", CreateForward<scalar::SinOp>},
    {"cos", CreateForward<scalar::CosOp>},
    {"silu", CreateForward<scalar::SiluOp>},
    {"hard_swish", CreateForward<scalar::HardSwishOp>},
    {"erf", CreateForward<scalar::ErfOp>},
    {"gelu", CreateGelu},
    {"leaky_relu", CreateForward<scalar::LeakyReluOp>},
    {"pow", CreateForward<scalar::PowOp>},
    {"clamp", CreateForward<scalar::ClampOp>},
    {"prelu", CreatePrelu},
};
constexpr Entry kGradients[] = {
    {"abs_grad", CreateGradient<scalar::AbsGradOp>},
    {"square_grad", CreateGradient<scalar::SquareGradOp>},
    {"log1p_grad", CreateGradient<scalar::Log1pGradOp>},
    {"sin_grad", CreateGradient<scalar::SinGradOp>},
    {"cos_grad", CreateGradient<scalar::CosGradOp>},
    {"silu_grad", CreateGradient<scalar::SiluGradOp>},
    {"hard_swish_grad", CreateGradient<scalar::HardSwishGradOp>},
    {"erf_grad", CreateGradient<scalar::ErfGradOp>},
    {"gelu_grad", CreateGeluGrad},
    {"leaky_relu_grad", CreateGradient<scalar::LeakyReluOp>},
    {"pow_grad", CreateGradient<scalar::PowGradOp>},
    {"clamp_grad", CreateGradient<scalar::ClampOp>},
    {"prelu_grad", CreatePreluGrad},
};

}  // namespace

void RegisterActivation(Registry& registry) {
  for (const Entry& entry : kForward) registry.Add(entry.name, entry.factory, {{0, 0}});
  for (const Entry& entry : kGradients) registry.Add(entry.name, entry.factory, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cuda
