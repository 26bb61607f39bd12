// Bounds for optimizers and gradient norms; see error_bounds.h.
#pragma once

#include <optional>
#include <vector>

#include "tests/kernels/error_notation.h"

namespace mpc::test {

/// By how many roundings of f32 a gradient may differ from the reference's when the rule of an optimizer sees it: 1 /
/// scale and the product are f32 in both; norm + 1e-6, the quotient and the product round, the last one in the
/// reference, too.
double ScalingRoundings(const OpCase& op_case);

/// What ArithmeticErrors returns, for adam, adam_weight_decay, adamw, lamb, global_norm and sum_of_squares; nothing for
/// other operations.
std::optional<Errors> OptimizerErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact);

}  // namespace mpc::test
