// Error bounds of batch normalisation and of statistics that a convolution takes of its result.
#pragma once

#include "tests/kernels/error_bounds.h"

namespace mpc::test {

/// As ArithmeticErrors; nothing for operations of other families. Notation: see error_bounds.cc.
std::optional<std::vector<std::optional<ElementErrors>>> BatchNormErrors(const op_cases::OpCase& op_case,
                                                                         const std::vector<reference::Tensor>& inputs,
                                                                         const std::vector<reference::Tensor>& exact);

/// Of conv2d_statistics, whose y is off by `y_error` before it is stored.
std::vector<std::optional<ElementErrors>> Conv2dStatisticsErrors(const op_cases::OpCase& op_case,
                                                                 const ElementErrors& y_error,
                                                                 const std::vector<reference::Tensor>& exact);

}  // namespace mpc::test
