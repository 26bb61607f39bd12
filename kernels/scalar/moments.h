// Mean and variance from sums of x and x^2, in f64.
//
// The squares of f32 values are exact in f64. What E[x^2] - E[x]^2 loses, n 2^-53 E[x^2] at most, is below what a mean
// that was rounded to f32 does to a second pass over the centred squares, (n 2^-24 E|x|)^2. So one pass over memory is
// enough where f64 is added as fast as memory delivers, as on the GPUs that kernels/cuda is for.
#pragma once

#include "kernels/host_device.h"
#include "kernels/scalar/number.h"

namespace mpc::scalar {

template <typename F>
struct Moments {
  F mean, variance;

  MPC_HOST_DEVICE static Moments FromSums(WideOf<F> sum, WideOf<F> squares, double count) {
    const WideOf<F> mean = sum / count;
    const WideOf<F> difference = squares / count - mean * mean;
    // Rounding may leave it below 0; NaN passes.
    return {ToFloat(mean), ToFloat(Select(difference < 0.0, 0.0, difference))};
  }
};

}  // namespace mpc::scalar
