// Statistics over axes that are made of operations that exist. They are computed in f32 at every level, as behind a
// user's cast, and under a low Cell::ToFloat. Squares in f16 would be infinite from 256 on. Tensors that are low
// themselves give a low result. Sums, means, squares and roots are Deny or read f32. See frontend/graph/ops.h for how
// functions record, run and fail.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc {

/// The mean of (x - mean)^2 over `axes`, or over all where none are given, as in MindSpore. With `ddof` the sum is
/// divided by the count less ddof: torch.var, whose correction is 1, takes ddof = 1. Errors: an axis that x lacks; a
/// ddof below 0, or not below the count.
Tensor var(const Tensor& x, const std::vector<std::int64_t>& axes = {}, std::int64_t ddof = 0, bool keep_dims = false);
/// The root of var, with its options and errors: MindSpore's and PyTorch's `std`. Where it is 0, so is the derivative.
Tensor stddev(const Tensor& x, const std::vector<std::int64_t>& axes = {}, std::int64_t ddof = 0,
              bool keep_dims = false);
/// The norm of the given order over `axes`, or over all where none are given. 2 is the root of the sum of squares, 1
/// the sum of |x|, infinity the largest |x|. Where it is 0, so is the derivative. Errors: another order, which PyTorch
/// has; an axis that x lacks.
Tensor norm(const Tensor& x, double ord = 2, const std::vector<std::int64_t>& axes = {}, bool keep_dims = false);
/// The sum of a b over `axis`, divided by their norms, of which each counts as at least `eps`. The result lacks the
/// axis. Both have one rank and one extent of it, and other axes broadcast. Names and defaults are MindSpore's. Errors:
/// other shapes; an eps that is negative or that f32 does not hold.
Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t axis = 1, double eps = 1e-8);

namespace ops {

using mpc::cosine_similarity, mpc::norm, mpc::stddev, mpc::var;

}  // namespace ops
}  // namespace mpc
