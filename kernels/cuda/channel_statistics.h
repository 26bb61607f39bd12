// Statistics of channels that batch normalisation reads, from sums of elements and of their squares.
#pragma once

#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/device_language.h"
#include "kernels/cuda/kernel.h"
#include "kernels/scalar/moments.h"

namespace mpc::cuda {

/// The end of a ChannelReduce of MomentSums: stores the statistics of `count` elements per channel. A null address
/// means that a statistic is not wanted.
struct ChannelStatistics {
  float *mean, *variance, *inv_std;
  double count;
  float epsilon;

  __device__ void operator()(std::int64_t channel, const double (&sums)[2]) const {
    const auto moments = scalar::Moments<float>::FromSums(sums[0], sums[1], count);
    if (mean != nullptr) mean[channel] = moments.mean;
    if (variance != nullptr) variance[channel] = moments.variance;
    if (inv_std != nullptr) inv_std[channel] = 1.0f / std::sqrt(moments.variance + epsilon);
  }
};

/// The statistics of conv2d_statistics, whose convolution has results of shape `y`. convolution_statistics.cu
ChannelStatistics StatisticsOf(const KernelSpec& spec, const Shape& y, const KernelOperands& operands);

/// Statistics from f32 sums, [channels], that a library has computed. convolution_statistics.cu
absl::Status FinishStatistics(LaunchQueue& queue, const float* sum, const float* squares, std::int64_t channels,
                              const ChannelStatistics& statistics);

}  // namespace mpc::cuda
