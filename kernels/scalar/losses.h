// Losses of one pair of elements, a prediction and its target, in f32.
#pragma once

#include <cmath>

#include "kernels/host_device.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::scalar {

/// `Slope` is the derivative of `Loss` by the first element, divided by kFactor.
struct SquaredError {
  static constexpr float kFactor = 2.0f;
  MPC_HOST_DEVICE static float Loss(float p, float t) { return (p - t) * (p - t); }
  MPC_HOST_DEVICE static float Slope(float p, float t) { return p - t; }
};

struct BinaryCrossEntropy {
  static constexpr float kFactor = 1.0f;
  MPC_HOST_DEVICE static float Loss(float x, float z) {
    return (x > 0.0f ? x : 0.0f) - x * z + Log1pExp(-std::fabs(x));
  }
  MPC_HOST_DEVICE static float Slope(float x, float z) { return Sigmoid(x) - z; }

  // log(1 + e), e = exp(x) in (0, 1]. 1 + e loses low digits of e; the quotient by what was really added restores them.
  MPC_HOST_DEVICE static float Log1pExp(float x) {
    const float e = Exp(x);
    const float sum = 1.0f + e;
    const float added = sum - 1.0f;
    return added == 0.0f ? e : Log(sum) * (e / added);
  }
};

/// A class of weight 0 adds nothing to a cross-entropy even where its logit is infinite.
MPC_HOST_DEVICE inline float CrossEntropyTerm(float weight, float logit, float log_sum_exp) {
  const float term = weight * (log_sum_exp - logit);
  return weight != 0.0f ? term : 0.0f;
}

/// `label_sum` is the sum of the row's weights, 1 for sparse labels.
MPC_HOST_DEVICE inline float CrossEntropySlope(float weight, float logit, float log_sum_exp, float label_sum) {
  return Exp(logit - log_sum_exp) * label_sum - weight;
}

}  // namespace mpc::scalar
