// The `activation` attribute of matmul and conv2d: applied to the f32 result before it is rounded.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/scalar/activation.h"
#include "kernels/scalar/unary.h"

namespace mpc {

/// `gelu` and `gelu_tanh` are mpc.gelu's forms "none" and "tanh".
enum class Activation : std::uint8_t { kNone, kRelu, kSigmoid, kTanh, kGelu, kGeluTanh };

/// Errors (INVALID_ARGUMENT): an unknown name.
inline absl::StatusOr<Activation> ParseActivation(const std::string& name) {
  if (name.empty() || name == "none") return Activation::kNone;
  if (name == "relu") return Activation::kRelu;
  if (name == "sigmoid") return Activation::kSigmoid;
  if (name == "tanh") return Activation::kTanh;
  if (name == "gelu") return Activation::kGelu;
  if (name == "gelu_tanh") return Activation::kGeluTanh;
  return absl::InvalidArgumentError(absl::StrCat(
      R"(activation is one of "none", "relu", "sigmoid", "tanh", "gelu", "gelu_tanh"; got ")", name, "\""));
}

namespace scalar {

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

}  // namespace scalar
}  // namespace mpc
