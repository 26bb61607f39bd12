#include "frontend/graph/activation_ops.h"

#include "absl/strings/str_cat.h"
#include "frontend/graph/composed_ops.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"
#include "frontend/graph/scalar_ops.h"
#include "frontend/graph/wide_scope.h"

namespace mpc {
Tensor glu(const Tensor& x, std::int64_t axis) {
  const bool exists = axis >= -x.rank() && axis < x.rank();
  if (!exists || x.dim(axis) % 2 != 0) {
    return internal::FailWith(
        absl::StrCat("glu takes an axis of an even extent, got axis ", axis, " of ", x.spec().ToString()), x.shape());
  }
  const std::vector<Tensor> halves = split(x, {x.dim(axis) / 2, x.dim(axis) / 2}, axis);
  return halves[0] * sigmoid(halves[1]);
}

Tensor selu(const Tensor& x) { return elu(x, 1.6732632423543772848) * 1.0507009873554804934; }

Tensor celu(const Tensor& x, double alpha) {
  if (!(static_cast<float>(alpha) > 0 && internal::IsFiniteInF32(alpha))) {
    return internal::FailWith(absl::StrCat("celu takes an alpha that is finite and > 0 in f32, got ", alpha),
                              x.shape());
  }
  if (!IsFloating(x.dtype())) {
    return internal::FailWith(absl::StrCat("celu takes a floating tensor, got ", x.spec().ToString()), x.shape());
  }
  // f16 does not hold every alpha. A positive x keeps its bits. NaN passes the comparison.
  const internal::WideScope wide_scope;
  const Tensor wide = internal::Widened(x);
  const Tensor positive = greater(wide, 0);
  const Tensor low = where(positive, 0, wide);
  const Tensor y = where(positive, wide, elu(low / ops::Fill(low.dtype(), {}, alpha)) * alpha);
  return internal::NarrowedLike(x, y);
}

Tensor hardtanh(const Tensor& x, double minimum, double maximum) {
  if (!(minimum < maximum)) {
    return internal::FailWith(
        absl::StrCat("hardtanh takes a minimum below its maximum, got ", minimum, " and ", maximum), x.shape());
  }
  return clamp(x, minimum, maximum);
}

Tensor logsigmoid(const Tensor& x) { return neg(softplus(neg(x))); }

Tensor softsign(const Tensor& x) { return x / (abs(x) + 1.0); }

Tensor hardshrink(const Tensor& x, double lambd) {
  if (!internal::IsFiniteInF32(lambd)) {
    return internal::FailWith(absl::StrCat("hardshrink takes a lambd that is finite in f32, got ", lambd), x.shape());
  }
  return where(less_equal(abs(x), lambd), 0, x);
}

Tensor softshrink(const Tensor& x, double lambd) {
  if (!(lambd >= 0 && internal::IsFiniteInF32(lambd))) {
    return internal::FailWith(absl::StrCat("softshrink takes a lambd that is finite in f32 and >= 0, got ", lambd),
                              x.shape());
  }
  return x - clamp(x, -lambd, lambd);
}

}  // namespace mpc
