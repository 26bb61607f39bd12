// Error bounds of activation functions, prelu, gather_grad and reduce_max_grad.
#pragma once

#include "tests/kernels/error_notation.h"

namespace mpc::test {

/// As ArithmeticErrors; nothing for operations of other families. Notation: see error_notation.h.
std::optional<Errors> ActivationErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact);

}  // namespace mpc::test
