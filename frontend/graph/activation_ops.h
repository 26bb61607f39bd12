// Activations that are made of operations that exist. Each states the AMP classes of its parts, which docs/amp.md
// lists. Names and defaults are MindSpore's. See frontend/graph/ops.h for how functions record, run and fail.
#pragma once

#include <cstdint>

#include "frontend/graph/tensor.h"

namespace mpc {

/// a * sigmoid(b) for the halves a and b of x along `axis` (Dauphin et al. 2017). The split is Clear, the rest Infer.
/// Errors: an axis that x lacks, or of an odd extent.
Tensor glu(const Tensor& x, std::int64_t axis = -1);
/// 1.0507 x where x > 0, else 1.0507 * 1.6733 * (exp(x) - 1), with the constants of Klambauer et al. 2017 in full. The
/// product is Infer. The rest is elu.
Tensor selu(const Tensor& x);
/// x where x > 0, else alpha * (exp(x / alpha) - 1). The derivative at 0 is 1. Computed in f32 at every level and
/// under a low Cell::ToFloat, since f16 does not hold every alpha. A low x gives a low result. Errors: an alpha that is
/// not a finite number > 0 in f32; integers.
Tensor celu(const Tensor& x, double alpha = 1.0);
/// x limited to [minimum, maximum]. At a bound the gradient passes, as in clamp (Clear). Errors: minimum >= maximum.
Tensor hardtanh(const Tensor& x, double minimum = -1.0, double maximum = 1.0);
/// log(sigmoid(x)) = -softplus(-x), which no finite x makes overflow. AMP classes: those of softplus, and Clear.
Tensor logsigmoid(const Tensor& x);
/// x / (1 + |x|); NaN for an infinite x, as in PyTorch. Sum and quotient are Infer, |x| is Clear.
Tensor softsign(const Tensor& x);
/// 0 where |x| <= lambd, else x. A NaN passes. Comparison and choice (Clear). Errors: a lambd that is not finite in
/// f32.
Tensor hardshrink(const Tensor& x, double lambd = 0.5);
/// x - lambd where x > lambd, x + lambd where x < -lambd, else 0. A NaN passes. The difference is Infer, clamp is
/// Clear. Errors: a lambd that is negative or not finite in f32.
Tensor softshrink(const Tensor& x, double lambd = 0.5);

namespace ops {

using mpc::celu, mpc::glu, mpc::hardshrink, mpc::hardtanh, mpc::logsigmoid, mpc::selu, mpc::softshrink, mpc::softsign;

}  // namespace ops
}  // namespace mpc
