// Clipping gradients by their norm.
#pragma once

#include "kernels/host_device.h"
#include "kernels/scalar/number.h"

namespace mpc::scalar {

/// What gradients of this norm are multiplied by: NaN for a norm that is not finite.
template <typename F>
MPC_HOST_DEVICE inline F ClipFactor(F norm, float max_norm) {
  const F factor = max_norm / (norm + 1e-6f);
  return Select(Abs(norm) < __builtin_inff(), Select(factor < 1.0f, factor, 1.0f), __builtin_nanf(""));
}

}  // namespace mpc::scalar
