// The running statistics of batch normalisation, one element at a time, in f32. The kernels of every device apply it
// and give the same bits.
#pragma once

#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/kernel_spec.h"
#include "kernels/known_attributes.h"

namespace mpc::scalar {

/// What a running variance takes of the biased variance of a batch with `count` elements a channel.
inline float VarianceWeight(double momentum, std::int64_t count) {
  // One element has no unbiased variance; the biased one (zero) stands for it.
  const double unbias = count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1;
  return static_cast<float>((1 - momentum) * unbias);
}

/// The running mean (0) and variance (1). A count of 0 says that variances are multiplied by VarianceWeight already.
struct RunningStatistics {
  float keep;
  float weights[2];
  explicit RunningStatistics(const KernelSpec& spec) {
    const double momentum = spec.attributes.Get(attribute::kMomentum);
    const std::int64_t count = spec.attributes.Get(attribute::kCount);
    keep = static_cast<float>(momentum);
    weights[0] = static_cast<float>(1 - momentum);
    weights[1] = count == 0 ? 1.0f : VarianceWeight(momentum, count);
  }
  MPC_HOST_DEVICE float Apply(int statistic, float running, float batch) const {
    return keep * running + weights[statistic] * batch;
  }
};

}  // namespace mpc::scalar
