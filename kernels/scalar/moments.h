// Mean and variance from sums of x and x^2, in f64.
//
// The squares of f32 values are exact in f64. The error of E[x^2] - E[x]^2 is at most n 2^-53 E[x^2]. A second pass
// over the centred squares, with a mean rounded to f32, would have a larger one: (n 2^-24 E|x|)^2. So one pass over
// memory is enough where f64 is added as fast as memory delivers, as on the GPUs that kernels/cuda is for.
//
// Chan, Golub and LeVeque 1983, "Algorithms for computing the sample variance: analysis and recommendations", call
// E[x^2] - E[x]^2 the textbook algorithm, and compare it with others.
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
