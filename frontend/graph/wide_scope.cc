#include "frontend/graph/wide_scope.h"

#include "frontend/graph/ops.h"
#include "frontend/graph/trace.h"
#include "kernels/dtype.h"

namespace mpc::internal {

WideScope::WideScope() {
  auto* trace = Trace::Current();
  if (trace == nullptr) return;
  const compiler::Scope scope = trace->cells().scope();
  if (!scope.pin.has_value() || !IsLowPrecision(*scope.pin)) return;
  fixed_.emplace(trace->cells(), compiler::Scope{.path = scope.path, .pin = DType::kF32, .recompute = scope.recompute});
}

Tensor Widened(const Tensor& x) { return x.dtype() == DType::kF64 ? x : cast(x, DType::kF32); }

Tensor NarrowedLike(const Tensor& x, const Tensor& y) { return IsLowPrecision(x.dtype()) ? cast(y, x.dtype()) : y; }

}  // namespace mpc::internal
