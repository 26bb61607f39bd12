// Element-wise functions of numbers that are made of operations that exist. Each states the AMP classes of its parts
// and its error in f32, in units of 2^-23 of the exact value. Bounds follow from those of kernels/scalar/vector_math.h
// and special_functions.h. See frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include "frontend/graph/tensor.h"

namespace mpc {

/// The smallest integer >= x, exactly; its derivative is zero. Floor and signs (Clear).
Tensor ceil(const Tensor& x);
/// The integer part of x, exactly: it rounds towards 0. Its derivative is zero. Floor, signs and choice (Clear).
Tensor trunc(const Tensor& x);
/// The nearest integer, exactly; of two it is the even one, as in PyTorch. Its derivative is zero. Floor, comparisons
/// signs and choices are Clear, differences Infer. A zero keeps the sign of x.
Tensor round(const Tensor& x);
/// exp(x) - 1, which keeps the digits of a small x: there it is tanh(x / 2) * (exp(x) + 1). Its error is at most 4
/// units where the result is a normal number. Computed in f32 at every level and under a low Cell::ToFloat. A low x
/// gives a low result.
Tensor expm1(const Tensor& x);
/// The tangent of x in radians, sin(x) / cos(x), with an error of at most 2 units. Computed in f32 as expm1 is.
Tensor tan(const Tensor& x);
/// (exp(x) - exp(-x)) / 2, with an error of at most 16 units. It is made of expm1(|x| / 2), and computed in f32 as that
/// is. Beyond 89.41 the result is infinite. Beyond 100 the derivative is 0, where PyTorch's is infinite.
Tensor sinh(const Tensor& x);
/// (exp(x) + exp(-x)) / 2, with an error of at most 11 units. The rest is as in sinh.
Tensor cosh(const Tensor& x);
/// The logarithm to base 2, with an error of at most 2 units. That of a power of 2 may not be whole. The logarithm is
/// Deny, the product Infer.
Tensor log2(const Tensor& x);
/// The logarithm to base 10. The rest is as in log2.
Tensor log10(const Tensor& x);
/// a + weight * (b - a), which is a at weight 0 and b at weight 1. From a weight of 1/2 on it is
/// b - (b - a) * (1 - weight), as in PyTorch. a and b broadcast. Computed in f32 as expm1 is, so that b - a is finite
/// where f16 holds a and b. The type of the result is a's. Errors: integers.
Tensor lerp(const Tensor& a, const Tensor& b, double weight);
/// With a weight for each element, which broadcasts.
Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);

namespace ops {

using mpc::ceil, mpc::cosh, mpc::expm1, mpc::lerp, mpc::log10, mpc::log2, mpc::round, mpc::sinh, mpc::tan, mpc::trunc;

}  // namespace ops
}  // namespace mpc
