// Losses of one pair of elements, a prediction and its target, in f32.
#pragma once

#include "kernels/host_device.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::scalar {

/// `Slope` is the derivative of `Loss` by the first element, divided by kFactor.
struct SquaredError {
  static constexpr float kFactor = 2.0f;
  template <typename F>
  MPC_HOST_DEVICE static F Loss(F p, F t) {
    return (p - t) * (p - t);
  }
  template <typename F>
  MPC_HOST_DEVICE static F Slope(F p, F t) {
    return p - t;
  }
};

struct BinaryCrossEntropy {
  static constexpr float kFactor = 1.0f;
  // max(x, 0) - x z is |x| times what the label leaves to the other side. An infinite logit on the label's side adds 0.
  template <typename F>
  MPC_HOST_DEVICE static F Loss(F x, F z) {
    const F magnitude = Abs(x);
    const F wrong = Select(x > 0.0f, 1.0f - z, z);
    return Select(wrong != 0.0f, magnitude * wrong, 0.0f) + Log1pExp(-magnitude);
  }
  template <typename F>
  MPC_HOST_DEVICE static F Slope(F x, F z) {
    return Sigmoid(x) - z;
  }

  // log(1 + e), e = exp(x) in (0, 1]. 1 + e loses low digits of e; the quotient by what was really added restores them.
  template <typename F>
  MPC_HOST_DEVICE static F Log1pExp(F x) {
    const F e = Exp(x);
    const F sum = 1.0f + e;
    const F added = sum - 1.0f;
    return Select(added == 0.0f, e, Log(sum) * (e / added));
  }
};

/// A class of weight 0 adds nothing to a cross-entropy even where its logit is infinite.
template <typename F>
MPC_HOST_DEVICE inline F CrossEntropyTerm(F weight, F logit, F log_sum_exp) {
  const F term = weight * (log_sum_exp - logit);
  return Select(weight != 0.0f, term, 0.0f);
}

/// `probability` is exp(logit - log_sum_exp), `label_sum` the sum of the row's weights, 1 for sparse labels.
template <typename F>
MPC_HOST_DEVICE inline F CrossEntropySlope(F weight, F probability, F label_sum) {
  return probability * label_sum - weight;
}

}  // namespace mpc::scalar
