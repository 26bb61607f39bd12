// Functions made of operations that exist. Each has the AMP classes of its parts, which docs/amp.md lists.
// Names are MindSpore's. See frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc {

/// x where x > 0, else alpha * (exp(x) - 1), of x's shape. The derivative at 0 is alpha. A negative x close to 0 keeps
/// its digits: there it is tanh(x / 2) * (exp(x) + 1), with tanh in f32. The exponential is Deny. Sums, products and
/// tanh are Infer, comparisons and choices are Clear.
Tensor elu(const Tensor& x, double alpha = 1.0);
/// log(1 + exp(x)), of x's shape, which no finite x makes overflow. The derivative is sigmoid(x). The exponential and
/// the logarithm are Deny.
Tensor softplus(const Tensor& x);
/// x * tanh(softplus(x)), of x's shape; NaN for minus infinity, as in PyTorch. The product and tanh are Infer, and
/// softplus has its own classes.
Tensor mish(const Tensor& x);
/// x / sqrt(mean(x^2) + epsilon) * gamma over the last axis; gamma is [its extent]. It is computed in f32 at every
/// level, as behind a user's cast, and under a low Cell::ToFloat. Squares in f16 would be infinite from x = 256 on.
/// Tensors that are low themselves give a low result. MindSpore's ops.rms_norm also returns the reciprocal root, which
/// this does not. Errors: gamma of another shape; an epsilon that f32 does not hold.
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double epsilon = 1e-6);
/// Joins tensors of one shape along a new axis. Data movement (Clear). Errors: no tensors, other shapes, an axis
/// outside [-rank - 1, rank].
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis = 0);
/// Repeats x `repeats[i]` times along axis i. The shorter of x's shape and `repeats` gets leading ones. Data movement
/// (Clear). Errors: a count below 1.
Tensor tile(const Tensor& x, std::vector<std::int64_t> repeats);
/// The lower triangle of the last two axes: zeros where column > row + diagonal. Selection (Clear). Errors: a rank
/// below 2.
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);
/// The upper triangle of the last two axes: zeros where column < row + diagonal. AMP class and errors are those of
/// tril.
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);
/// The i32 indices that sort x along `axis`. Equal elements keep their order; a NaN is the largest. Comparison (Clear).
Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);

struct Conv1dOpOptions {
  std::int64_t stride = 1;
  std::string pad_mode = "valid";              ///< same, valid, pad
  std::vector<std::int64_t> padding = {0, 0};  ///< left, right
  std::int64_t dilation = 1;
  std::int64_t group = 1;
};
/// x [N, C, L], weight [O, C / group, k]; `bias` is [O] or undefined. The product is conv2d (Allow) on an image of one
/// row, between reshapes (Clear). Errors: other ranks, another number of paddings.
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv1dOpOptions& options = {});

namespace ops {

using mpc::argsort, mpc::conv1d, mpc::elu, mpc::mish, mpc::rms_norm, mpc::softplus, mpc::stack, mpc::tile, mpc::tril,
    mpc::triu;

}  // namespace ops
}  // namespace mpc
