// Error bounds of activation functions, prelu, gather_grad and reduce_max_grad.
#pragma once

#include "tests/kernels/error_bounds.h"

namespace mpc::test {

/// As ArithmeticErrors; nothing for operations of other families. Notation: see error_bounds.cc.
std::optional<std::vector<std::optional<ElementErrors>>> ActivationErrors(const op_cases::OpCase& op_case,
                                                                          const std::vector<reference::Tensor>& inputs,
                                                                          const std::vector<reference::Tensor>& exact);

}  // namespace mpc::test
