// Error bounds of batch normalisation and of statistics that a convolution takes of its result.
#pragma once

#include "tests/kernels/error_notation.h"

namespace mpc::test {

/// As ArithmeticErrors; nothing for operations of other families. Notation: see error_notation.h.
std::optional<Errors> BatchNormErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact);

/// Of conv2d_statistics, whose y is off by `y_error` before it is stored.
Errors Conv2dStatisticsErrors(const OpCase& op_case, const ElementErrors& y_error, const Tensors& exact);

}  // namespace mpc::test
