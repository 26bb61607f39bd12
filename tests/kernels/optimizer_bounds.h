// Bounds for optimizers and gradient norms; see error_bounds.h.
#pragma once

#include <optional>
#include <vector>

#include "tests/kernels/error_bounds.h"

namespace mpc::test {

/// What ArithmeticErrors returns, for adam, adam_weight_decay, adamw, lamb and global_norm; nothing for other
/// operations.
std::optional<std::vector<std::optional<ElementErrors>>> OptimizerErrors(const op_cases::OpCase& op_case,
                                                                         const std::vector<reference::Tensor>& inputs,
                                                                         const std::vector<reference::Tensor>& exact);

}  // namespace mpc::test
