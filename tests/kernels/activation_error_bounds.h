// Error bounds of activation functions, prelu, gather_grad, reduce_max_grad and products over axes.
#pragma once

#include "tests/kernels/error_notation.h"

namespace mpc::test {

/// As ArithmeticErrors; nothing for operations of other families. Notation: see error_notation.h.
std::optional<Errors> ActivationErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact);

/// A bound on |computed - y| of gelu as the activation of a product whose sum is `z`, where `y` is exact: that of a
/// kernel of gelu, or of a library that computes it by (1 + erf) or (1 + tanh), whose error is relative to z. oneDNN's
/// erf is that of Abramowitz and Stegun 7.1.26, off by 1.5e-7, half of which remains: product_activation_test sees at
/// most 4.5 u of z in all for erf, and 1.9 u for tanh.
double GeluOfProductError(bool tanh_form, double z, double y);

}  // namespace mpc::test
