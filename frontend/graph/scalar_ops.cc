#include "frontend/graph/scalar_ops.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "frontend/graph/emit.h"
#include "kernels/dtype.h"

namespace mpc {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Whether a tensor of `dtype` can hold `value`, up to rounding.
bool CanHold(DType dtype, double value) {
  if (IsFloating(dtype)) return true;
  if (value != std::floor(value)) return false;
  switch (dtype) {
    case DType::kBool:
      return value == 0 || value == 1;
    case DType::kI32:
      return value >= -0x1p31 && value < 0x1p31;
    case DType::kI64:
      return value >= -0x1p63 && value < 0x1p63;
    default:
      return false;
  }
}

// `value` as a constant beside x.
Tensor Beside(const Tensor& x, double value) {
  if (!x.defined() || !x.status().ok()) return x;
  if (CanHold(x.dtype(), value)) return ops::Fill(x.dtype(), {}, value);
  return internal::FailWith(absl::StrCat("the number ", value, " beside ", x.spec().ToString(),
                                         " is none of its type; take one that is, or cast the tensor"),
                            {});
}

// A constant that x is compared with. One beside a low x stays f32.
Tensor ComparedTo(const Tensor& x, double value) {
  const bool is_low = x.defined() && x.status().ok() && IsLowPrecision(x.dtype());
  return is_low ? ops::Fill(DType::kF32, {}, value) : Beside(x, value);
}

}  // namespace

Tensor operator/(double value, const Tensor& x) { return div(Beside(x, value), x); }
Tensor reciprocal(const Tensor& x) { return 1.0 / x; }
Tensor rsqrt(const Tensor& x) { return 1.0 / sqrt(x); }
Tensor maximum(const Tensor& x, double value) { return maximum(x, Beside(x, value)); }
Tensor maximum(double value, const Tensor& x) { return maximum(Beside(x, value), x); }
Tensor minimum(const Tensor& x, double value) { return minimum(x, Beside(x, value)); }
Tensor minimum(double value, const Tensor& x) { return minimum(Beside(x, value), x); }
Tensor equal(const Tensor& x, double value) { return equal(x, ComparedTo(x, value)); }
Tensor greater(const Tensor& x, double value) { return greater(x, ComparedTo(x, value)); }
Tensor less(const Tensor& x, double value) { return less(x, ComparedTo(x, value)); }
Tensor not_equal(const Tensor& x, double value) { return not_equal(x, ComparedTo(x, value)); }
Tensor greater_equal(const Tensor& x, double value) { return greater_equal(x, ComparedTo(x, value)); }
Tensor less_equal(const Tensor& x, double value) { return less_equal(x, ComparedTo(x, value)); }
Tensor where(const Tensor& condition, const Tensor& a, double b) { return where(condition, a, Beside(a, b)); }
Tensor where(const Tensor& condition, double a, const Tensor& b) { return where(condition, Beside(b, a), b); }

Tensor sign(const Tensor& x) { return where(greater(x, 0), 1, where(less(x, 0), -1, Beside(x, 0))); }

Tensor isnan(const Tensor& x) { return not_equal(x, x); }
Tensor isinf(const Tensor& x) { return equal(abs(x), kInfinite); }
Tensor isfinite(const Tensor& x) { return less(abs(x), kInfinite); }

}  // namespace mpc
