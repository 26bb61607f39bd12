// softmax, log_softmax and their gradients, one element at a time: what the passes over a row leave to do.
//
// The maximum is subtracted before exp. So no term of finite elements overflows, and their sum is at least 1. Terms
// below 2^-126.5 are 0. Blanchard, Higham and Higham 2021, "Accurately computing the log-sum-exp and softmax
// functions", bound the errors of this form.
#pragma once

#include "kernels/host_device.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::scalar {

/// exp(x - max) of `shifted` = x - max, which is never above 0.
template <typename F>
MPC_HOST_DEVICE inline F SoftmaxTerm(F shifted) {
  return BoundedShareExp(shifted);
}

/// `shifted` is x - max; `Normaliser` is computed once a row from sum exp(x - max).
struct SoftmaxOp {
  template <typename F>
  MPC_HOST_DEVICE static F Normaliser(F sum) {
    return 1.0f / sum;
  }
  template <typename F>
  MPC_HOST_DEVICE static F Share(F term, F normaliser) {
    return term * normaliser;
  }
  template <typename F>
  MPC_HOST_DEVICE static F Result(F shifted, F normaliser) {
    return Share(SoftmaxTerm(shifted), normaliser);
  }
};
struct LogSoftmaxOp {
  template <typename F>
  MPC_HOST_DEVICE static F Normaliser(F sum) {
    return Log(sum);
  }
  template <typename F>
  MPC_HOST_DEVICE static F Result(F shifted, F normaliser) {
    return shifted - normaliser;
  }
};

/// `sum` is that of the row's terms.
struct SoftmaxGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Term(F dy, F y) {
    return dy * y;
  }
  template <typename F>
  MPC_HOST_DEVICE static F Result(F dy, F y, F sum) {
    return y * (dy - sum);
  }
};
struct LogSoftmaxGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Term(F dy, F) {
    return dy;
  }
  template <typename F>
  MPC_HOST_DEVICE static F Result(F dy, F y, F sum) {
    return dy - ShareExp(y) * sum;
  }
};

}  // namespace mpc::scalar
