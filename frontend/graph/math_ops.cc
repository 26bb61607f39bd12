#include "frontend/graph/math_ops.h"

#include <numbers>
#include <string>

#include "absl/strings/str_cat.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/scalar_ops.h"
#include "frontend/graph/wide_scope.h"

namespace mpc {
namespace {

using internal::NarrowedLike;
using internal::Widened;
using internal::WideScope;

// expm1 of an f32 x.
Tensor WideExpm1(const Tensor& x) {
  // Near 0 a difference of neighbours would lose digits. Further out it loses at most two bits. NaN is not near.
  const Tensor is_near = less(abs(x), 0.5);
  const Tensor small = where(is_near, x, 0);
  return where(is_near, tanh(small * 0.5) * (exp(small) + 1.0), exp(x) - 1.0);
}

// sinh(y / 2) of an f32 y >= 0.
Tensor HalfSinh(const Tensor& y) {
  const Tensor less_one = WideExpm1(y * 0.5);
  return (less_one + less_one / (less_one + 1.0)) * 0.5;
}

// |x| without infinities, of the derivative 1 at 0. The hyperbolic functions of 100 are infinite in f32.
Tensor BoundedMagnitude(const Tensor& x, const Tensor& is_negative) {
  const Tensor y = where(is_negative, neg(x), x);
  return where(greater(y, 100), 100, y);
}

// Empty, or why a and b have no numbers between them.
std::string LerpError(const Tensor& a, const Tensor& b) {
  if (IsFloating(a.dtype()) && IsFloating(b.dtype())) return "";
  return absl::StrCat("lerp takes floating tensors, got ", a.spec().ToString(), " and ", b.spec().ToString());
}

}  // namespace

Tensor ceil(const Tensor& x) { return neg(floor(neg(x))); }

Tensor trunc(const Tensor& x) { return where(less(x, 0), ceil(x), floor(x)); }

Tensor round(const Tensor& x) {
  const Tensor low = floor(x);
  // Rounding of this difference does not move it across 1/2: below, x is a small negative number.
  const Tensor rest = x - low;
  const Tensor is_odd = not_equal(floor(low * 0.5) * 2.0, low);
  const Tensor is_up = logical_or(greater(rest, 0.5), logical_and(equal(rest, 0.5), is_odd));
  const Tensor rounded = where(is_up, low + 1.0, low);
  return where(less(x, 0), neg(abs(rounded)), rounded);  // -0 from below
}

Tensor expm1(const Tensor& x) {
  const WideScope wide_scope;
  return NarrowedLike(x, WideExpm1(Widened(x)));
}

Tensor tan(const Tensor& x) {
  const WideScope wide_scope;
  const Tensor wide = Widened(x);
  return NarrowedLike(x, sin(wide) / cos(wide));
}

Tensor sinh(const Tensor& x) {
  const WideScope wide_scope;
  const Tensor wide = Widened(x);
  const Tensor is_negative = less(wide, 0);
  // 2 sinh(y / 2) cosh(y / 2), where cosh(y / 2) = 1 + 2 sinh(y / 4)^2.
  const Tensor y = BoundedMagnitude(wide, is_negative);
  const Tensor half_cosh = square(HalfSinh(y * 0.5)) * 2.0 + 1.0;
  const Tensor magnitude = HalfSinh(y) * half_cosh * 2.0;
  return NarrowedLike(x, where(is_negative, neg(magnitude), magnitude));
}

Tensor cosh(const Tensor& x) {
  const WideScope wide_scope;
  const Tensor wide = Widened(x);
  const Tensor half = HalfSinh(BoundedMagnitude(wide, less(wide, 0)));
  return NarrowedLike(x, square(half) * 2.0 + 1.0);
}

Tensor log2(const Tensor& x) { return log(x) * std::numbers::log2e; }
Tensor log10(const Tensor& x) { return log(x) * std::numbers::log10e; }

Tensor lerp(const Tensor& a, const Tensor& b, double weight) {
  if (std::string error = LerpError(a, b); !error.empty()) return internal::FailWith(error, a.shape());
  const WideScope wide_scope;
  const Tensor from = Widened(a), to = Widened(b);
  const Tensor step = to - from;
  return NarrowedLike(a, weight < 0.5 ? from + step * weight : to - step * (1 - weight));
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  if (std::string error = LerpError(a, b); !error.empty()) return internal::FailWith(error, a.shape());
  const WideScope wide_scope;
  const Tensor from = Widened(a), to = Widened(b), share = Widened(weight);
  const Tensor step = to - from;
  return NarrowedLike(a, where(less(share, 0.5), from + step * share, to - step * (1.0 - share)));
}

}  // namespace mpc
