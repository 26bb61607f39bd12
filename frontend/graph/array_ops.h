// Functions of whole tensors that are made of operations that exist. Each states the AMP classes of its parts. See
// frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc {

/// `value` where `mask` (i1) holds, else x. The mask broadcasts to x, and the value is one of x's type. Selection
/// (Clear). Errors: a mask of another type, or that does not broadcast to x.
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value);
/// x whose elements are moved `shifts[i]` places along axes[i]; those that leave an end come in at the other. Without
/// axes x is moved as one row. Data movement (Clear). Errors: another count of shifts than of axes; an axis that x
/// lacks.
Tensor roll(const Tensor& x, const std::vector<std::int64_t>& shifts, const std::vector<std::int64_t>& axes = {});
/// Each element `repeats` times in a row along `axis`, or of x as one row where none is given. Data movement (Clear).
/// Errors: fewer than one repeat, an axis that x lacks.
Tensor repeat_interleave(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> axis = std::nullopt);
/// The products of each element of a [N] with each of b [M]: [N, M]. The product is Infer. Errors: another rank.
Tensor outer(const Tensor& a, const Tensor& b);
/// The sum of products of a [N] and b [N]: a scalar. It is a matmul (Allow). Errors: other shapes or types.
Tensor dot(const Tensor& a, const Tensor& b);
/// Of x [N] the matrix [N, N] with x on its diagonal, of a matrix its diagonal. Selection (Clear) or gather (Clear).
/// Errors: another rank.
Tensor diag(const Tensor& x);
/// Ones on the diagonal of [rows, columns], zeros elsewhere; columns are rows where they are left out. Errors: an
/// extent below 1.
Tensor eye(std::int64_t rows, std::optional<std::int64_t> columns = std::nullopt, DType dtype = DType::kF32);
/// `steps` numbers from `start` to `end`, evenly spaced, computed in f64 and rounded to f32; one step gives `start`.
/// They are constants. Errors: steps outside [1, 2^24]; a number that f32 does not hold.
Tensor linspace(double start, double end, std::int64_t steps);

namespace ops {

using mpc::diag, mpc::dot, mpc::eye, mpc::linspace, mpc::masked_fill, mpc::outer, mpc::repeat_interleave, mpc::roll;

}  // namespace ops
}  // namespace mpc
