// The `activation` attribute of matmul and conv2d: applied to the f32 result before it is rounded.
#pragma once

#include "kernels/attribute_enums.h"
#include "kernels/scalar/activation.h"
#include "kernels/scalar/unary.h"

namespace mpc::scalar {

/// `activation` of one element. The branch is the same for all elements of a kernel.
MPC_HOST_DEVICE inline float Activate(Activation activation, float x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return ReluOp::Apply(x);
    case Activation::kSigmoid:
      return SigmoidOp::Apply(x);
    case Activation::kTanh:
      return TanhOp::Apply(x);
    case Activation::kGelu:
      return GeluOp::Apply(x);
    case Activation::kGeluTanh:
      return GeluTanhOp::Apply(x);
  }
  return x;
}

}  // namespace mpc::scalar
