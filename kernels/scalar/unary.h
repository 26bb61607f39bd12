// Element-wise operations of one f32 element: what kernels and generated code apply, the same bits on each device.
#pragma once

#include "kernels/host_device.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::scalar {

// NaN passes: it is not smaller than 0.
struct ReluOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    // -0 becomes +0; NaN compares false and stays.
    return Select(x <= 0.0f, 0.0f, x);
  }
};
struct SigmoidOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return Sigmoid(x);
  }
};
struct TanhOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return Tanh(x);
  }
};
struct ExpOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return Exp(x);
  }
};
struct LogOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return Log(x);
  }
};
struct SqrtOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return Sqrt(x);
  }
};
struct NegOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x) {
    return -x;
  }
};

struct ReluGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F y) {
    return Select(y > 0.0f, dy, 0.0f);
  }
};
struct SigmoidGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F y) {
    return dy * y * (1.0f - y);
  }
};
struct TanhGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F y) {
    return dy * (1.0f - y * y);
  }
};
struct SqrtGradOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F dy, F y) {
    return dy / (2.0f * y);
  }
};

struct AddScalarOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x, float value) {
    return x + value;
  }
};
struct MulScalarOp {
  template <typename F>
  MPC_HOST_DEVICE static F Apply(F x, float value) {
    return x * value;
  }
};

}  // namespace mpc::scalar
