// Element-wise operations of two operands with broadcasting: add, sub, mul, div, maximum, minimum. Their gradient
// operations are div_grad (dy, y, b), maximum_grad and minimum_grad (dy, a, b).
#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/registry.h"
#include "kernels/scalar/binary.h"

namespace mpc::cuda {
namespace {

template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateBinary(const KernelSpec& spec, const KernelContext&) {
  const auto maps = BroadcastMaps<2>(spec.inputs, spec.outputs[0].shape);
  if (!maps.ok()) return maps.status();
  const bool plain = (*maps)[0].is_identity() && (*maps)[1].is_identity();
  return MakeKernel([maps = *maps, plain, a_type = spec.inputs[0].dtype, b_type = spec.inputs[1].dtype,
                     y_type = spec.outputs[0].dtype,
                     count = spec.outputs[0].num_elements()](const KernelOperands& operands, LaunchQueue& queue) {
    const Source a{operands.inputs[0], a_type}, b{operands.inputs[1], b_type};
    const Sink y{operands.outputs[0], y_type};
    if (plain) return Map<2>(queue, {{a, b}, y}, Elementwise<Op>(), count);
    return MapElements(queue, BroadcastOperands<2>{{{a, maps[0]}, {b, maps[1]}}, y}, Elementwise<Op>(), count);
  });
}

/// Three operands in the shape of the first; a result whose data is null is not wanted.
struct GradientOperands {
  BroadcastSource x[3];
  Sink results[2];
};

template <typename Op>
__global__ void __launch_bounds__(kMapThreads) GradientKernel(GradientOperands operands, std::int64_t count) {
  AwaitEarlierLaunches();
  const bool first_wanted = operands.results[0].data != nullptr;
  const bool second_wanted = operands.results[1].data != nullptr;
  ForEachVector(
      count,
      [&](std::int64_t index) {
        float x[3][kVector], first[kVector], second[kVector];
        MPC_UNROLL
        for (int k = 0; k < 3; ++k) operands.x[k].LoadVector(index, x[k]);
        for (int i = 0; i < kVector; ++i) {
          first[i] = Op::First(x[0][i], x[1][i], x[2][i]);
          second[i] = Op::Second(x[0][i], x[1][i], x[2][i]);
        }
        if (first_wanted) operands.results[0].StoreVector(index, first);
        if (second_wanted) operands.results[1].StoreVector(index, second);
      },
      [&](std::int64_t i) {
        const float x0 = operands.x[0].Load(i), x1 = operands.x[1].Load(i), x2 = operands.x[2].Load(i);
        if (first_wanted) operands.results[0].Store(i, Op::First(x0, x1, x2));
        if (second_wanted) operands.results[1].Store(i, Op::Second(x0, x1, x2));
      });
}

/// One or two results of three operands, each stretched to the first, dy: Op::First and Op::Second.
template <typename Op>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGradient(const KernelSpec& spec, const KernelContext&) {
  const Shape& shape = spec.inputs[0].shape;
  const auto maps = BroadcastMaps<3>(spec.inputs, shape);
  if (!maps.ok()) return maps.status();
  GradientOperands unbound{};
  bool used[2] = {};
  for (std::size_t i = 0; i < 3; ++i) unbound.x[i] = {{nullptr, spec.inputs[i].dtype}, (*maps)[i]};
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) {
    unbound.results[i] = {nullptr, spec.outputs[i].dtype};
    used[i] = spec.uses(i);
  }
  return MakeKernel([unbound, first_used = used[0], second_used = used[1], count = NumElements(shape)](
                        const KernelOperands& operands, LaunchQueue& queue) {
    GradientOperands bound = unbound;
    for (std::size_t i = 0; i < 3; ++i) bound.x[i].source.data = operands.inputs[i];
    if (first_used) bound.results[0].data = operands.outputs[0];
    if (second_used) bound.results[1].data = operands.outputs[1];
    return launch(queue, &GradientKernel<Op>, MapShape(count), bound, count);
  });
}

}  // namespace

void RegisterBinary(Registry& registry) {
  using namespace scalar;
  registry.Add("add", CreateBinary<AddOp>, {{0, 0}, {0, 1}});
  registry.Add("sub", CreateBinary<SubOp>, {{0, 0}, {0, 1}});
  registry.Add("mul", CreateBinary<MulOp>, {{0, 0}, {0, 1}});
  registry.Add("div", CreateBinary<DivOp>, {{0, 0}, {0, 1}});
  registry.Add("maximum", CreateBinary<MaximumOp>, {{0, 0}, {0, 1}});
  registry.Add("minimum", CreateBinary<MinimumOp>, {{0, 0}, {0, 1}});
  registry.Add("div_grad", CreateGradient<DivGradOp>, {{0, 0}, {0, 1}, {0, 2}});
  registry.Add("maximum_grad", CreateGradient<MaximumGradOp>, {{0, 0}, {1, 0}});
  registry.Add("minimum_grad", CreateGradient<MinimumGradOp>, {{0, 0}, {1, 0}});
}

}  // namespace mpc::cuda
