// softmax, log_softmax and their gradients, one element at a time: what the passes over a row leave to do.
#pragma once

#include "kernels/host_device.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::scalar {

/// `shifted` is x - max; `Normaliser` is computed once a row from sum exp(x - max).
struct SoftmaxOp {
  MPC_HOST_DEVICE static float Normaliser(float sum) { return sum; }
  MPC_HOST_DEVICE static float Result(float shifted, float normaliser) { return Exp(shifted) / normaliser; }
};
struct LogSoftmaxOp {
  MPC_HOST_DEVICE static float Normaliser(float sum) { return Log(sum); }
  MPC_HOST_DEVICE static float Result(float shifted, float normaliser) { return shifted - normaliser; }
};

/// `sum` is that of the row's terms.
struct SoftmaxGradOp {
  MPC_HOST_DEVICE static float Term(float dy, float y) { return dy * y; }
  MPC_HOST_DEVICE static float Result(float dy, float y, float sum) { return y * (dy - sum); }
};
struct LogSoftmaxGradOp {
  MPC_HOST_DEVICE static float Term(float dy, float) { return dy; }
  MPC_HOST_DEVICE static float Result(float dy, float y, float sum) { return dy - Exp(y) * sum; }
};

}  // namespace mpc::scalar
