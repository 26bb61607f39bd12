// Error bounds of attention and its derivatives.
#pragma once

#include "tests/kernels/error_notation.h"

namespace mpc::test {

/// How a device computes attention of low types.
enum class AttentionArithmetic {
  kAsWritten,  ///< probabilities are rounded to the values' type, delta is the sum of dp * p
  /// As one pass over the columns does, cuDNN's among them. Exponentials are rounded before they are divided by their
  /// sum. delta is the sum of dy * y of a rounded y. exp is the device's approximation of 2^x.
  kFused,
};

/// As ArithmeticErrors, for "attention" and "packed_attention", and for the gradients of both. Notation: see
/// error_notation.h.
Errors AttentionErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact,
                       AttentionArithmetic arithmetic = AttentionArithmetic::kAsWritten);
Errors AttentionGradErrors(const OpCase& op_case, const Tensors& inputs,
                           AttentionArithmetic arithmetic = AttentionArithmetic::kAsWritten);

}  // namespace mpc::test
