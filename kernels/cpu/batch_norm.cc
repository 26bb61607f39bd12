// batch_norm_train, batch_norm_infer and batch_norm_running_update for [N, C], NCHW and NHWC; x and y of any floating
// storage type, parameters and statistics f32. The variance is the mean of (x - mean)^2, in a pass of its own.
#include <cmath>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/channels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/scalar/optimizer_rules.h"

namespace mpc::cpu {
namespace {

using Expanded = ChannelView::Expanded;
constexpr std::int64_t kRun = ChannelView::kRun;

// y = (x - mean) * scale + beta.
void Normalize(const ChannelView& view, Source x, Sink y, const float* mean, const float* scale, const float* beta) {
  view.Visit([&](std::int64_t channel) {
    struct Parameters {
      Expanded mean, scale, beta;
    } p;
    view.Expand(mean, channel, p.mean);
    view.Expand(scale, channel, p.scale);
    view.Expand(beta, channel, p.beta);
    return [p, x, y](std::int64_t offset, std::int64_t size) {
      float x_buffer[kRun], y_buffer[kRun];
      const float* in = x.Load(offset, size, x_buffer);
      float* out = y.Target(offset, y_buffer);
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        out[i] = (in[i] - p.mean.values[i]) * p.scale.values[i] + p.beta.values[i];
      }
      y.Commit(offset, size, out);
    };
  });
}

void ChannelMeans(const ChannelView& view, Source x, float* partial, float* mean) {
  view.Sum<1>(partial, {mean}, [&](std::int64_t) {
    return [x](std::int64_t offset, std::int64_t size, float(*sums)[kRun]) {
      float buffer[kRun];
      const float* in = x.Load(offset, size, buffer);
      float* sum = sums[0];
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) sum[i] += in[i];
    };
  });
  for (std::int64_t c = 0; c < view.channels(); ++c) mean[c] /= static_cast<float>(view.count());
}

void ChannelVariances(const ChannelView& view, Source x, const float* mean, float* partial, float* variance) {
  view.Sum<1>(partial, {variance}, [&](std::int64_t channel) {
    Expanded p;
    view.Expand(mean, channel, p);
    return [p, x](std::int64_t offset, std::int64_t size, float(*sums)[kRun]) {
      float buffer[kRun];
      const float* in = x.Load(offset, size, buffer);
      float* sum = sums[0];
#pragma omp simd
      for (std::int64_t i = 0; i < size; ++i) {
        const float difference = in[i] - p.values[i];
        sum[i] += difference * difference;
      }
    };
  });
  for (std::int64_t c = 0; c < view.channels(); ++c) variance[c] /= static_cast<float>(view.count());
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateTrain(const KernelSpec& spec) {
  const ChannelView view(spec.inputs[0].shape, spec.attributes.GetString("data_format", "NCHW"));
  const std::size_t channels = static_cast<std::size_t>(view.channels());
  const std::size_t partials = view.partial_count(1);
  const auto run =
      [view, channels, partials, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
       used = std::array<bool, 4>{spec.uses(0), spec.uses(1), spec.uses(2), spec.uses(3)},
       epsilon = static_cast<float>(spec.attributes.GetDouble("epsilon", 1e-5f))](const KernelOperands& operands) {
        const Source x{in, operands.inputs[0]};
        const float* gamma = static_cast<const float*>(operands.inputs[1]);
        const float* beta = static_cast<const float*>(operands.inputs[2]);
        float* partial = static_cast<float*>(operands.workspace);
        float* mean = partial + partials;
        float* variance = mean + channels;
        float* inv_std = variance + channels;
        float* scale = inv_std + channels;
        ChannelMeans(view, x, partial, mean);
        ChannelVariances(view, x, mean, partial, variance);
        for (std::size_t c = 0; c < channels; ++c) {
          inv_std[c] = 1.0f / std::sqrt(variance[c] + epsilon);
          scale[c] = inv_std[c] * gamma[c];
        }
        if (used[0]) Normalize(view, x, {out, operands.outputs[0]}, mean, scale, beta);
        const float* statistics[] = {mean, variance, inv_std};
        for (std::size_t i = 0; i < 3; ++i) {
          if (used[i + 1]) std::copy_n(statistics[i], channels, static_cast<float*>(operands.outputs[i + 1]));
        }
      };
  return MakeKernel(run, (partials + 4 * channels) * sizeof(float));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateInfer(const KernelSpec& spec) {
  const ChannelView view(spec.inputs[0].shape, spec.attributes.GetString("data_format", "NCHW"));
  const std::size_t channels = static_cast<std::size_t>(view.channels());
  const auto run =
      [view, channels, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
       epsilon = static_cast<float>(spec.attributes.GetDouble("epsilon", 1e-5f))](const KernelOperands& operands) {
        const float* gamma = static_cast<const float*>(operands.inputs[1]);
        const float* variance = static_cast<const float*>(operands.inputs[4]);
        float* scale = static_cast<float*>(operands.workspace);
        for (std::size_t c = 0; c < channels; ++c) scale[c] = gamma[c] / std::sqrt(variance[c] + epsilon);
        Normalize(view, {in, operands.inputs[0]}, {out, operands.outputs[0]},
                  static_cast<const float*>(operands.inputs[3]), scale, static_cast<const float*>(operands.inputs[2]));
      };
  return MakeKernel(run, channels * sizeof(float));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateRunningUpdate(const KernelSpec& spec) {
  const auto run = [has_predicate = spec.inputs.size() > 4, used = std::array<bool, 2>{spec.uses(0), spec.uses(1)},
                    channels = spec.inputs[0].num_elements(),
                    statistics = scalar::RunningStatistics(spec)](const KernelOperands& operands) {
    const bool update = !has_predicate || *static_cast<const std::uint8_t*>(operands.inputs[4]) != 0;
    for (int i = 0; i < 2; ++i) {
      if (!used[i]) continue;
      const float* running = static_cast<const float*>(operands.inputs[i]);
      const float* batch = static_cast<const float*>(operands.inputs[i + 2]);
      float* target = static_cast<float*>(operands.outputs[i]);
      if (!update && target == running) continue;
      for (std::int64_t c = 0; c < channels; ++c) {
        target[c] = update ? statistics.Apply(i, running[c], batch[c]) : running[c];
      }
    }
  };
  return MakeKernel(run);
}

}  // namespace

void RegisterBatchNorm(Registry& registry) {
  registry.Add("batch_norm_train", CreateTrain, {{0, 0}});
  registry.Add("batch_norm_infer", CreateInfer, {{0, 0}});
  registry.Add("batch_norm_running_update", CreateRunningUpdate, {{0, 0}, {1, 1}});
}

}  // namespace mpc::cpu
