// Element-wise operations of one f32 element: what a device's kernels apply, the same bits on each.
#pragma once

#include <cmath>

#include "kernels/host_device.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::scalar {

// NaN passes: it is not smaller than 0.
struct ReluOp {
  MPC_HOST_DEVICE static float Apply(float x) { return x < 0.0f ? 0.0f : x; }
};
struct SigmoidOp {
  MPC_HOST_DEVICE static float Apply(float x) { return Sigmoid(x); }
};
struct TanhOp {
  MPC_HOST_DEVICE static float Apply(float x) { return Tanh(x); }
};
struct ExpOp {
  MPC_HOST_DEVICE static float Apply(float x) { return Exp(x); }
};
struct LogOp {
  MPC_HOST_DEVICE static float Apply(float x) { return Log(x); }
};
struct SqrtOp {
  MPC_HOST_DEVICE static float Apply(float x) { return std::sqrt(x); }
};
struct NegOp {
  MPC_HOST_DEVICE static float Apply(float x) { return -x; }
};

struct ReluGradOp {
  MPC_HOST_DEVICE static float Apply(float dy, float y) { return y > 0.0f ? dy : 0.0f; }
};
struct SigmoidGradOp {
  MPC_HOST_DEVICE static float Apply(float dy, float y) { return dy * y * (1.0f - y); }
};
struct TanhGradOp {
  MPC_HOST_DEVICE static float Apply(float dy, float y) { return dy * (1.0f - y * y); }
};
struct SqrtGradOp {
  MPC_HOST_DEVICE static float Apply(float dy, float y) { return dy / (2.0f * y); }
};

struct AddScalarOp {
  MPC_HOST_DEVICE static float Apply(float x, float value) { return x + value; }
};
struct MulScalarOp {
  MPC_HOST_DEVICE static float Apply(float x, float value) { return x * value; }
};

}  // namespace mpc::scalar
