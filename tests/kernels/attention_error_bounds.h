// Error bounds of attention and its derivatives.
#pragma once

#include "tests/kernels/error_notation.h"

namespace mpc::test {

/// As ArithmeticErrors, for "attention" and "attention_grad". Notation: see error_notation.h.
Errors AttentionErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact);
Errors AttentionGradErrors(const OpCase& op_case, const Tensors& inputs);

}  // namespace mpc::test
