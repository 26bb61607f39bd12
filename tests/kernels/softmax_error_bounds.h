// Error bounds of softmax, log_softmax and the cross-entropy behind a softmax.
#pragma once

#include "tests/kernels/error_notation.h"

namespace mpc::test {

/// As ArithmeticErrors; nothing for operations of other families. Notation: see error_notation.h.
std::optional<Errors> SoftmaxErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact);

}  // namespace mpc::test
