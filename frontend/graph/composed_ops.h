// Functions made of operations that exist. Each has the AMP classes of its parts, which docs/amp.md lists.
// Names are MindSpore's. See frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc {

/// x where x > 0, else alpha * (exp(x) - 1), of x's shape. The derivative at 0 is alpha. An infinite x gives NaN.
/// The exponential is Deny, and so f32.
Tensor elu(const Tensor& x, double alpha = 1.0);
/// log(1 + exp(x)), of x's shape, which no finite x makes overflow. The derivative is sigmoid(x). An infinite x gives
/// NaN. The exponential and the logarithm are Deny, and so f32.
Tensor softplus(const Tensor& x);
/// x * tanh(softplus(x)), of x's shape. Its parts are Infer, but for those of softplus.
Tensor mish(const Tensor& x);
/// x / sqrt(mean(x^2) + epsilon) * gamma over the last axis; gamma is [its extent]. Squares and means are Deny, and so
/// f32. MindSpore's ops.rms_norm also returns the reciprocal root, which this does not. Errors: gamma of another shape.
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double epsilon = 1e-6);
/// Joins tensors of one shape along a new axis. Data movement (Clear). Errors: no tensors, other shapes, an axis
/// outside [-rank - 1, rank].
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis = 0);
/// The i32 indices that sort x along `axis`. Equal elements keep their order; a NaN is the largest.
Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);

namespace ops {

using mpc::argsort, mpc::elu, mpc::mish, mpc::rms_norm, mpc::softplus, mpc::stack;

}  // namespace ops
}  // namespace mpc
