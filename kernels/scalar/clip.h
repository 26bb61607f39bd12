// Clipping gradients by their norm: Pascanu, Mikolov and Bengio 2013, "On the difficulty of training recurrent neural
// networks".
#pragma once

#include "kernels/host_device.h"
#include "kernels/scalar/number.h"

namespace mpc::scalar {

/// The f32 factor for gradients of this norm, an f64 number. It is NaN for a norm that is not finite. The squares of
/// finite f32 gradients overflow f32 but never f64, so that only gradients that are not finite have such a norm.
template <typename D>
MPC_HOST_DEVICE inline auto ClipFactor(D norm, float max_norm) {
  using F = decltype(ToFloat(norm));
  const D factor = D(static_cast<double>(max_norm)) / (norm + D(static_cast<double>(1e-6f)));
  const D limited = Select(factor < D(1.0), factor, D(1.0));
  // An infinity minus itself is NaN, too.
  return Select(norm - norm == D(0.0), ToFloat(limited), F(__builtin_nanf("")));
}

/// A norm in memory: f64, or f32 in Programs that were made before norms were f64.
struct NormOperand {
  const void* data;  ///< null: gradients are not clipped
  bool is_f64;

  MPC_HOST_DEVICE double Load() const {
    return is_f64 ? *static_cast<const double*>(data) : static_cast<double>(*static_cast<const float*>(data));
  }
  /// 1 where gradients are not clipped.
  MPC_HOST_DEVICE float Factor(float max_norm) const { return data == nullptr ? 1.0f : ClipFactor(Load(), max_norm); }
};

}  // namespace mpc::scalar
