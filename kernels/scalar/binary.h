// Element-wise operations of two f32 elements and their derivatives: what a device's kernels apply.
#pragma once

#include "kernels/host_device.h"

namespace mpc::scalar {

struct AddOp {
  MPC_HOST_DEVICE static float Apply(float a, float b) { return a + b; }
};
struct SubOp {
  MPC_HOST_DEVICE static float Apply(float a, float b) { return a - b; }
};
struct MulOp {
  MPC_HOST_DEVICE static float Apply(float a, float b) { return a * b; }
};
struct DivOp {
  MPC_HOST_DEVICE static float Apply(float a, float b) { return a / b; }
};
// NaN if either is: a NaN in a makes `a > b` false and `b == b` true, hence the order of the tests.
struct MaximumOp {
  MPC_HOST_DEVICE static float Apply(float a, float b) { return a > b || a != a ? a : b; }
};
// As MaximumOp.
struct MinimumOp {
  MPC_HOST_DEVICE static float Apply(float a, float b) { return a < b || a != a ? a : b; }
};

/// The gradient of b alone; operands dy, y and b.
struct DivGradOp {
  MPC_HOST_DEVICE static float First(float dy, float y, float b) { return -dy * y / b; }
  MPC_HOST_DEVICE static float Second(float, float, float) { return 0.0f; }
};

/// The gradients of a and b; operands dy, a and b. Equal operands share the gradient.
struct MaximumGradOp {
  MPC_HOST_DEVICE static float First(float dy, float a, float b) { return a > b ? dy : (a == b ? 0.5f * dy : 0.0f); }
  MPC_HOST_DEVICE static float Second(float dy, float a, float b) { return First(dy, b, a); }
};
struct MinimumGradOp {
  MPC_HOST_DEVICE static float First(float dy, float a, float b) { return a < b ? dy : (a == b ? 0.5f * dy : 0.0f); }
  MPC_HOST_DEVICE static float Second(float dy, float a, float b) { return First(dy, b, a); }
};

struct EqualOp {
  template <typename T>
  MPC_HOST_DEVICE static bool Apply(T a, T b) {
    return a == b;
  }
};
struct GreaterOp {
  template <typename T>
  MPC_HOST_DEVICE static bool Apply(T a, T b) {
    return a > b;
  }
};
struct LessOp {
  template <typename T>
  MPC_HOST_DEVICE static bool Apply(T a, T b) {
    return a < b;
  }
};

}  // namespace mpc::scalar
