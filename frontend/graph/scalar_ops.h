// Numbers in place of tensors, and element-wise functions that are made with them. A number becomes a constant of one
// element, of the type of the tensor beside it, which broadcasts. Integers take whole numbers of their range, and truth
// values 0 and 1. See frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include "frontend/graph/ops.h"
#include "frontend/graph/tensor.h"

namespace mpc {

/// value / x. The quotient is Infer, as that of tensors.
Tensor operator/(double value, const Tensor& x);
/// 1 / x. The quotient is Infer.
Tensor reciprocal(const Tensor& x);
/// 1 / sqrt(x). The quotient and the root are Infer.
Tensor rsqrt(const Tensor& x);
Tensor maximum(const Tensor& x, double value);
Tensor maximum(double value, const Tensor& x);
Tensor minimum(const Tensor& x, double value);
Tensor minimum(double value, const Tensor& x);
Tensor equal(const Tensor& x, double value);
Tensor greater(const Tensor& x, double value);
Tensor less(const Tensor& x, double value);
Tensor not_equal(const Tensor& x, double value);
Tensor greater_equal(const Tensor& x, double value);
Tensor less_equal(const Tensor& x, double value);
Tensor where(const Tensor& condition, const Tensor& a, double b);
Tensor where(const Tensor& condition, double a, const Tensor& b);

/// 1 where x > 0, -1 where x < 0, else 0, of x's shape and type. So a NaN gives 0. The derivative is zero. Comparisons
/// and selections (Clear). It takes floating tensors and integers.
Tensor sign(const Tensor& x);
/// True where a floating x is NaN. Comparison (Clear).
Tensor isnan(const Tensor& x);
/// True where a floating x is infinite. Comparison (Clear).
Tensor isinf(const Tensor& x);
/// True where a floating x is neither infinite nor NaN. Comparison (Clear).
Tensor isfinite(const Tensor& x);

namespace ops {

using mpc::equal, mpc::greater, mpc::greater_equal, mpc::isfinite, mpc::isinf, mpc::isnan, mpc::less, mpc::less_equal,
    mpc::maximum, mpc::minimum, mpc::not_equal, mpc::reciprocal, mpc::rsqrt, mpc::sign, mpc::where;

}  // namespace ops
}  // namespace mpc
