// batch_norm_train_grad and batch_norm_infer_grad for [N, C], NCHW and NHWC: two sums a channel, then dx element by
// element; dy, x and dx of any floating storage type, the rest f32.
#include <cmath>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/channels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"

namespace mpc::cpu {
namespace {

using Expanded = ChannelView::Expanded;
constexpr std::int64_t kRun = ChannelView::kRun;

// dbeta = sum dy; centred = sum dy * (x - mean).
void CotangentSums(const ChannelView& view, Source dy, Source x, const float* mean, float* partial, float* dbeta,
                   float* centred) {
  view.Sum<2>(partial, {dbeta, centred}, [&](std::int64_t channel) {
    Expanded p;
    view.Expand(mean, channel, p);
    return [p, dy, x](std::int64_t offset, std::int64_t size, float(*sums)[kRun]) {
      float dy_buffer[kRun], x_buffer[kRun];
      const float* dy_values = dy.Load(offset, size, dy_buffer);
      const float* x_values = x.Load(offset, size, x_buffer);
      float* beta_sum = sums[0];
      float* centred_sum = sums[1];
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        beta_sum[i] += dy_values[i];
        centred_sum[i] += dy_values[i] * (x_values[i] - p.values[i]);
      }
    };
  });
}

// dx = scale * (dy - shift - (x - mean) * slope).
struct InputGradient {
  const float *mean, *scale, *shift, *slope;

  void Apply(const ChannelView& view, Source dy, Source x, Sink dx) const {
    view.Visit([&](std::int64_t channel) {
      struct Parameters {
        Expanded mean, scale, shift, slope;
      } p;
      view.Expand(mean, channel, p.mean);
      view.Expand(scale, channel, p.scale);
      view.Expand(shift, channel, p.shift);
      view.Expand(slope, channel, p.slope);
      return [p, dy, x, dx](std::int64_t offset, std::int64_t size) {
        float dy_buffer[kRun], x_buffer[kRun], dx_buffer[kRun];
        const float* dy_values = dy.Load(offset, size, dy_buffer);
        const float* x_values = x.Load(offset, size, x_buffer);
        float* target = dx.Target(offset, dx_buffer);
#pragma omp simd
        for (std::int64_t i = 0; i < size; ++i) {
          const float centred = x_values[i] - p.mean.values[i];
          target[i] = p.scale.values[i] * (dy_values[i] - p.shift.values[i] - centred * p.slope.values[i]);
        }
        dx.Commit(offset, size, target);
      };
    });
  }
};

// dx = dy * scale: the statistics are constants, x does not appear.
void ScaleByChannel(const ChannelView& view, Source dy, Sink dx, const float* scale) {
  view.Visit([&](std::int64_t channel) {
    Expanded p;
    view.Expand(scale, channel, p);
    return [p, dy, dx](std::int64_t offset, std::int64_t size) {
      float dy_buffer[kRun], dx_buffer[kRun];
      const float* dy_values = dy.Load(offset, size, dy_buffer);
      float* target = dx.Target(offset, dx_buffer);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) target[i] = dy_values[i] * p.values[i];
      dx.Commit(offset, size, target);
    };
  });
}

// Operands dy, x, gamma, mean, and inv_std (train) or variance (infer).
template <bool kTrain>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGrad(const KernelSpec& spec) {
  const ChannelView view(spec.inputs[0].shape, spec.attributes.GetString("data_format", "NCHW"));
  const std::size_t channels = static_cast<std::size_t>(view.channels());
  const std::size_t partials = view.partial_count(2);
  const auto run =
      [view, channels, partials, dy_type = spec.inputs[0].dtype, x_type = spec.inputs[1].dtype,
       dx_type = spec.outputs[0].dtype, used = std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)},
       epsilon = static_cast<float>(spec.attributes.GetDouble("epsilon", 1e-5f))](const KernelOperands& operands) {
        const Source dy{dy_type, operands.inputs[0]};
        const Source x{x_type, operands.inputs[1]};
        const float* gamma = static_cast<const float*>(operands.inputs[2]);
        const float* mean = static_cast<const float*>(operands.inputs[3]);
        const float* deviation = static_cast<const float*>(operands.inputs[4]);
        float* partial = static_cast<float*>(operands.workspace);
        float* dbeta = partial + partials;
        float* dgamma = dbeta + channels;
        float* scale = dgamma + channels;
        float* shift = scale + channels;
        float* slope = shift + channels;
        CotangentSums(view, dy, x, mean, partial, dbeta, dgamma);
        const float count = static_cast<float>(view.count());
        for (std::size_t c = 0; c < channels; ++c) {
          const float inv_std = kTrain ? deviation[c] : 1.0f / std::sqrt(deviation[c] + epsilon);
          dgamma[c] *= inv_std;
          scale[c] = gamma[c] * inv_std;
          shift[c] = dbeta[c] / count;
          slope[c] = inv_std * dgamma[c] / count;
        }
        if (used[0]) {
          const Sink dx{dx_type, operands.outputs[0]};
          if constexpr (kTrain) {
            InputGradient{mean, scale, shift, slope}.Apply(view, dy, x, dx);
          } else {
            ScaleByChannel(view, dy, dx, scale);
          }
        }
        if (used[1]) std::copy_n(dgamma, channels, static_cast<float*>(operands.outputs[1]));
        if (used[2]) std::copy_n(dbeta, channels, static_cast<float*>(operands.outputs[2]));
      };
  return MakeKernel(run, (partials + 5 * channels) * sizeof(float));
}

}  // namespace

void RegisterBatchNormGrad(Registry& registry) {
  registry.Add("batch_norm_train_grad", CreateGrad<true>, {{0, 0}, {0, 1}});
  registry.Add("batch_norm_infer_grad", CreateGrad<false>, {{0, 0}});
}

}  // namespace mpc::cpu
