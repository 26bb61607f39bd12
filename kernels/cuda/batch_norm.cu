// batch_norm_train, batch_norm_infer, their gradients and batch_norm_apply, for [N, C], NCHW and NHWC. Images and their
// cotangents have any floating storage type, parameters and statistics are f32. The statistics come from one pass, see
// scalar/moments.h.
#include <array>
#include <cmath>

#include "kernels/cuda/channels.h"
#include "kernels/cuda/registry.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/moments.h"

namespace mpc::cuda {
namespace {

/// mean, variance and inv_std of a channel; null where not wanted. `scale` is inv_std * gamma.
struct StoreStatistics {
  float* mean;
  float* scale;
  const float* gamma;
  float *mean_result, *variance_result, *inv_std_result;
  double count;
  float epsilon;

  __device__ void operator()(std::int64_t channel, const double (&sums)[2]) const {
    const auto moments = scalar::Moments<float>::FromSums(sums[0], sums[1], count);
    const float inv_std = 1.0f / std::sqrt(moments.variance + epsilon);
    mean[channel] = moments.mean;
    scale[channel] = inv_std * gamma[channel];
    if (mean_result != nullptr) mean_result[channel] = moments.mean;
    if (variance_result != nullptr) variance_result[channel] = moments.variance;
    if (inv_std_result != nullptr) inv_std_result[channel] = inv_std;
  }
};

/// y = (x - mean) * scale + beta.
struct Normalize {
  struct Parameters {
    float mean, scale, beta;
  };
  const float *mean, *scale, *beta;

  __device__ Parameters Load(std::int64_t channel) const { return {mean[channel], scale[channel], beta[channel]}; }
  __device__ static float Apply(const Parameters& p, const float (&x)[1]) { return (x[0] - p.mean) * p.scale + p.beta; }
};

/// The same with the mean and inv_std of a batch.
struct NormalizeByBatch {
  using Parameters = Normalize::Parameters;
  const float *gamma, *beta, *mean, *inv_std;

  __device__ Parameters Load(std::int64_t channel) const {
    return {mean[channel], inv_std[channel] * gamma[channel], beta[channel]};
  }
  __device__ static float Apply(const Parameters& p, const float (&x)[1]) { return Normalize::Apply(p, x); }
};

/// The same with given statistics.
struct NormalizeByGiven {
  using Parameters = Normalize::Parameters;
  const float *gamma, *beta, *mean, *variance;
  float epsilon;

  __device__ Parameters Load(std::int64_t channel) const {
    return {mean[channel], gamma[channel] / std::sqrt(variance[channel] + epsilon), beta[channel]};
  }
  __device__ static float Apply(const Parameters& p, const float (&x)[1]) { return Normalize::Apply(p, x); }
};

float Epsilon(const KernelSpec& spec) { return spec.attributes.Get(attribute::kEpsilon); }

ChannelView ViewOf(const KernelSpec& spec) {
  return ChannelView(spec.inputs[0].shape, spec.attributes.Get(attribute::kDataFormat), /*by_sample=*/false);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateTrain(const KernelSpec& spec, const KernelContext&) {
  const ChannelView view = ViewOf(spec);
  // Partial sums come first, since they are wider.
  const std::size_t partial_bytes = view.workspace_bytes<double>(2);
  const auto run = [view, partial_bytes, in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                    used = std::array<bool, 4>{spec.uses(0), spec.uses(1), spec.uses(2), spec.uses(3)},
                    epsilon = Epsilon(spec)](const KernelOperands& operands, LaunchQueue& queue) -> absl::Status {
    const Source x{operands.inputs[0], in};
    const auto result = [&](std::size_t i) { return used[i] ? static_cast<float*>(operands.outputs[i]) : nullptr; };
    auto* mean = reinterpret_cast<float*>(static_cast<unsigned char*>(operands.workspace) + partial_bytes);
    float* scale = mean + view.channels;
    const StoreStatistics store{mean,
                                scale,
                                static_cast<const float*>(operands.inputs[1]),
                                result(1),
                                result(2),
                                result(3),
                                static_cast<double>(view.count()),
                                epsilon};
    const absl::Status status =
        ChannelReduce<double, 1, 2>(queue, view, {{x}}, MomentSums(), store, operands.workspace);
    if (!status.ok() || !used[0]) return status;
    return ChannelMap<1>(queue, view, {{x}, {operands.outputs[0], out}},
                         Normalize{mean, scale, static_cast<const float*>(operands.inputs[2])});
  };
  return MakeKernel(run, partial_bytes + 2 * static_cast<std::size_t>(view.channels) * sizeof(float));
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateApply(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([view = ViewOf(spec), in = spec.inputs[0].dtype, out = spec.outputs[0].dtype](
                        const KernelOperands& operands, LaunchQueue& queue) {
    const auto parameter = [&](std::size_t i) { return static_cast<const float*>(operands.inputs[i]); };
    return ChannelMap<1>(queue, view, {{{operands.inputs[0], in}}, {operands.outputs[0], out}},
                         NormalizeByBatch{parameter(1), parameter(2), parameter(3), parameter(4)});
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateInfer(const KernelSpec& spec, const KernelContext&) {
  return MakeKernel([view = ViewOf(spec), in = spec.inputs[0].dtype, out = spec.outputs[0].dtype,
                     epsilon = Epsilon(spec)](const KernelOperands& operands, LaunchQueue& queue) {
    const auto parameter = [&](std::size_t i) { return static_cast<const float*>(operands.inputs[i]); };
    return ChannelMap<1>(queue, view, {{{operands.inputs[0], in}}, {operands.outputs[0], out}},
                         NormalizeByGiven{parameter(1), parameter(2), parameter(3), parameter(4), epsilon});
  });
}

/// Sums of dy and of dy * (x - mean).
struct CotangentSums {
  struct Parameters {
    float mean;
  };
  const float* mean;

  __device__ Parameters Load(std::int64_t channel) const { return {mean[channel]}; }
  __device__ static __forceinline__ void Add(const Parameters& p, const float (&x)[2], float (&sums)[2]) {
    sums[0] += x[0];
    sums[1] += x[0] * (x[1] - p.mean);
  }
};

/// The values of a channel that dx needs.
struct GradientScales {
  float *scale, *shift, *slope;
};

/// `deviation` is inv_std (train) or the variance (infer); gradients are null where not wanted.
template <bool kTrain>
struct StoreGradients {
  GradientScales scales;
  const float *gamma, *deviation;
  float *dgamma, *dbeta;
  float count, epsilon;

  __device__ void operator()(std::int64_t channel, const float (&sums)[2]) const {
    const float inv_std = kTrain ? deviation[channel] : 1.0f / std::sqrt(deviation[channel] + epsilon);
    const float gamma_gradient = sums[1] * inv_std;
    scales.scale[channel] = gamma[channel] * inv_std;
    scales.shift[channel] = sums[0] / count;
    scales.slope[channel] = inv_std * gamma_gradient / count;
    if (dgamma != nullptr) dgamma[channel] = gamma_gradient;
    if (dbeta != nullptr) dbeta[channel] = sums[0];
  }
};

/// dx = scale * (dy - shift - (x - mean) * slope).
struct InputGradient {
  struct Parameters {
    float mean, scale, shift, slope;
  };
  const float* mean;
  GradientScales scales;

  __device__ Parameters Load(std::int64_t channel) const {
    return {mean[channel], scales.scale[channel], scales.shift[channel], scales.slope[channel]};
  }
  __device__ static float Apply(const Parameters& p, const float (&x)[2]) {
    const float centred = x[1] - p.mean;
    return p.scale * (x[0] - p.shift - centred * p.slope);
  }
};

/// dx = dy * gamma * inv_std: given statistics are constants, and x does not appear.
struct ScaleByChannel {
  struct Parameters {
    float scale;
  };
  const float *gamma, *variance;
  float epsilon;

  __device__ Parameters Load(std::int64_t channel) const {
    return {gamma[channel] * (1.0f / std::sqrt(variance[channel] + epsilon))};
  }
  __device__ static float Apply(const Parameters& p, const float (&x)[1]) { return x[0] * p.scale; }
};

// The operands are dy, x, gamma, mean, and inv_std (train) or variance (infer).
template <bool kTrain>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGrad(const KernelSpec& spec, const KernelContext&) {
  const ChannelView view = ViewOf(spec);
  const std::size_t partial_bytes = view.workspace_bytes<float>(2);
  const auto run = [view, partial_bytes, dy_type = spec.inputs[0].dtype, x_type = spec.inputs[1].dtype,
                    dx_type = spec.outputs[0].dtype,
                    used = std::array<bool, 3>{spec.uses(0), spec.uses(1), spec.uses(2)},
                    epsilon = Epsilon(spec)](const KernelOperands& operands, LaunchQueue& queue) -> absl::Status {
    const Source dy{operands.inputs[0], dy_type};
    const Source x{operands.inputs[1], x_type};
    const Sink dx{operands.outputs[0], dx_type};
    const auto* gamma = static_cast<const float*>(operands.inputs[2]);
    const auto* mean = static_cast<const float*>(operands.inputs[3]);
    const auto* deviation = static_cast<const float*>(operands.inputs[4]);
    const auto result = [&](std::size_t i) { return used[i] ? static_cast<float*>(operands.outputs[i]) : nullptr; };
    auto* scale = reinterpret_cast<float*>(static_cast<unsigned char*>(operands.workspace) + partial_bytes);
    const GradientScales scales{scale, scale + view.channels, scale + 2 * view.channels};
    // The sums come first, since dx may lie where dy or x do.
    if (kTrain || used[1] || used[2]) {
      const StoreGradients<kTrain> store{
          scales, gamma, deviation, result(1), result(2), static_cast<float>(view.count()), epsilon};
      const absl::Status status =
          ChannelReduce<float, 2, 2>(queue, view, {{dy, x}}, CotangentSums{mean}, store, operands.workspace);
      if (!status.ok()) return status;
    }
    if (!used[0]) return absl::OkStatus();
    if constexpr (kTrain) return ChannelMap<2>(queue, view, {{dy, x}, dx}, InputGradient{mean, scales});
    return ChannelMap<1>(queue, view, {{dy}, dx}, ScaleByChannel{gamma, deviation, epsilon});
  };
  return MakeKernel(run, partial_bytes + 3 * static_cast<std::size_t>(view.channels) * sizeof(float));
}

}  // namespace

void RegisterBatchNorm(Registry& registry) {
  registry.Add("batch_norm_train", CreateTrain, {{0, 0}});
  registry.Add("batch_norm_train_grad", CreateGrad<true>, {{0, 0}, {0, 1}});
  registry.Add("batch_norm_apply", CreateApply, {{0, 0}});
  registry.Add("batch_norm_infer", CreateInfer, {{0, 0}});
  registry.Add("batch_norm_infer_grad", CreateGrad<false>, {{0, 0}});
}

}  // namespace mpc::cuda
