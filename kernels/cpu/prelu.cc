// prelu and prelu_grad, for any floating storage type, images in either layout, one slope a channel or one for all.
#include <array>

#include "kernels/cpu/channels.h"
#include "kernels/cpu/elementwise_loops.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/activation.h"

namespace mpc::cpu {
namespace {

using Expanded = ChannelView::Expanded;
constexpr std::int64_t kRun = ChannelView::kRun;

bool ChannelsLast(const KernelSpec& spec, const Shape& x) {
  return x.size() == 4 && spec.attributes.Get(attribute::kDataFormat) == DataFormat::kNHWC;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreatePrelu(const KernelSpec& spec) {
  KernelSpec broadcast = spec;
  Shape& alpha = broadcast.inputs[1].shape;
  const Shape& x = spec.inputs[0].shape;
  if (NumElements(alpha) == 1) {
    alpha.clear();
  } else if (!ChannelsLast(spec, x)) {
    alpha.resize(x.size() - 1, 1);  // [C, 1, ...] stands beside axis 1
  }
  return CreateBinary<scalar::PreluOp>(broadcast);
}

// The tensor as a matrix with one slope a column, or as planes of one slope.
ChannelView ViewOf(const KernelSpec& spec, const Shape& x, std::int64_t slopes) {
  const std::int64_t count = NumElements(x);
  if (slopes == 1 || ChannelsLast(spec, x)) return ChannelView(count / slopes, slopes, 1);
  return ChannelView(x[0], slopes, count / x[0] / slopes);
}

// The operands are dy, x and alpha.
absl::StatusOr<std::unique_ptr<Kernel>> CreatePreluGrad(const KernelSpec& spec) {
  const std::int64_t slopes = spec.inputs[2].num_elements();
  const ChannelView view = ViewOf(spec, spec.inputs[1].shape, slopes);
  const std::size_t partials = view.partial_count(1);
  const auto run = [view, slopes, partials, dy_type = spec.inputs[0].dtype, x_type = spec.inputs[1].dtype,
                    alpha_type = spec.inputs[2].dtype, dx_type = spec.outputs[0].dtype,
                    dalpha_type = spec.outputs[1].dtype,
                    used = std::array<bool, 2>{spec.uses(0), spec.uses(1)}](const KernelOperands& operands) {
    const Source dy{dy_type, operands.inputs[0]};
    const Source x{x_type, operands.inputs[1]};
    float* partial = static_cast<float*>(operands.workspace);
    float* dalpha = partial + partials;
    float* alpha = dalpha + slopes;
    // ---- Gradient of the slopes
    if (used[1]) {
      view.Sum<1>(partial, {dalpha}, [&](std::int64_t) {
        return [dy, x](std::int64_t offset, std::int64_t size, float(*sums)[kRun]) {
          float dy_buffer[kRun], x_buffer[kRun];
          const float* dy_values = dy.Load(offset, size, dy_buffer);
          const float* x_values = x.Load(offset, size, x_buffer);
          float* sum = sums[0];
#pragma omp simd
          for (std::int64_t i = 0; i < size; ++i) {
            sum[i] += scalar::PreluSlopeGradOp::Apply(dy_values[i], x_values[i]);
          }
        };
      });
      StoreFloats(dalpha_type, dalpha, operands.outputs[1], 0, slopes);
    }
    // ---- Gradient of x
    if (!used[0]) return;
    LoadFloats(alpha_type, operands.inputs[2], 0, slopes, alpha);
    const Sink dx{dx_type, operands.outputs[0]};
    view.Visit([&](std::int64_t channel) {
      Expanded p;
      view.Expand(alpha, channel, p);
      return [p, dy, x, dx](std::int64_t offset, std::int64_t size) {
        float dy_buffer[kRun], x_buffer[kRun], dx_buffer[kRun];
        const float* dy_values = dy.Load(offset, size, dy_buffer);
        const float* x_values = x.Load(offset, size, x_buffer);
        float* target = dx.Target(offset, dx_buffer);
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) {
          target[i] = x_values[i] > 0.0f ? dy_values[i] : p.values[i] * dy_values[i];
        }
        dx.Commit(offset, size, target);
      };
    });
  };
  return MakeKernel(run, (partials + 2 * static_cast<std::size_t>(slopes)) * sizeof(float));
}

}  // namespace

void RegisterPrelu(Registry& registry) {
  registry.Add("prelu", CreatePrelu, {{0, 0}});
  registry.Add("prelu_grad", CreatePreluGrad, {{0, 0}, {0, 1}});
}

}  // namespace mpc::cpu
