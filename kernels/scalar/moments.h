// Mean and variance from sums of x and x^2, in f64.
//
// The squares of f32 values are exact in f64. What E[x^2] - E[x]^2 loses, n 2^-53 E[x^2] at most, is below what a mean
// that was rounded to f32 does to a second pass over the centred squares, (n 2^-24 E|x|)^2. So one pass over memory is
// enough where f64 is added as fast as memory delivers, as on the GPUs that kernels/cuda is for.
#pragma once

#include "kernels/host_device.h"

namespace mpc::scalar {

struct Moments {
  float mean, variance;

  MPC_HOST_DEVICE static Moments FromSums(double sum, double squares, double count) {
    const double mean = sum / count;
    const double difference = squares / count - mean * mean;
    // Rounding may leave it below 0; NaN passes.
    return {static_cast<float>(mean), static_cast<float>(difference < 0.0 ? 0.0 : difference)};
  }
};

}  // namespace mpc::scalar
