// Clipping gradients by their norm.
#pragma once

#include <cmath>

#include "kernels/host_device.h"

namespace mpc::scalar {

/// What gradients of this norm are multiplied by: NaN for a norm that is not finite.
MPC_HOST_DEVICE inline float ClipFactor(float norm, float max_norm) {
  if (!(std::fabs(norm) < __builtin_inff())) return __builtin_nanf("");
  const float factor = max_norm / (norm + 1e-6f);
  return factor < 1.0f ? factor : 1.0f;
}

}  // namespace mpc::scalar
