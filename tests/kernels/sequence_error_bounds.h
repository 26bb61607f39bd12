// Error bounds of attention, recurrent cells, layer and group normalisation, binary cross-entropy.
#pragma once

#include "tests/kernels/error_notation.h"

namespace mpc::test {

/// As ArithmeticErrors; nothing for operations of other families. Notation: see error_notation.h.
std::optional<Errors> SequenceErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact);

}  // namespace mpc::test
