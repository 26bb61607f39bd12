// Bounds for optimizers and gradient norms; see error_bounds.h.
#pragma once

#include <optional>
#include <vector>

#include "tests/kernels/error_bounds.h"

namespace mpc::test {

/// By how many roundings of f32 a gradient may differ from the reference's when the rule of an optimizer sees it: 1 /
/// scale and the product are f32 in both; norm + 1e-6, the quotient and the product round, the last one in the
/// reference, too.
double ScalingRoundings(const op_cases::OpCase& op_case);

/// What ArithmeticErrors returns, for adam, adam_weight_decay, adamw, lamb, global_norm and sum_of_squares; nothing for
/// other operations.
std::optional<std::vector<std::optional<ElementErrors>>> OptimizerErrors(const op_cases::OpCase& op_case,
                                                                         const std::vector<reference::Tensor>& inputs,
                                                                         const std::vector<reference::Tensor>& exact);

}  // namespace mpc::test
