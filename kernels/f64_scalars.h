// The element types that kernels take. Tensors are never f64 outside of the reference implementation. Scalars are f64
// where they hold sums of squares, which f32 would overflow.
#pragma once

#include "kernels/kernel_spec.h"

namespace mpc {

/// Whether a kernel may be made for the element types of `spec`. The types that only casts take (f8) have no kernels
/// yet. Only scalars are f64. They are the result and the last `sums` operands of global_norm, and the result of
/// sum_of_squares. Also the norm of clip_by_norm and of an optimizer that clips, the operand of check_finite, and the
/// operand of a cast to f32.
bool TakesStorageTypes(const KernelSpec& spec);

/// A scalar in memory that may be f64 or, in Programs that were made before it was, f32.
inline double LoadWideScalar(DType dtype, const void* data) {
  return dtype == DType::kF64 ? *static_cast<const double*>(data) : double{*static_cast<const float*>(data)};
}
inline void StoreWideScalar(DType dtype, double value, void* data) {
  if (dtype == DType::kF64) {
    *static_cast<double*>(data) = value;
  } else {
    *static_cast<float*>(data) = static_cast<float>(value);
  }
}

}  // namespace mpc
