// Error bounds of attention and its derivatives.
#pragma once

#include "tests/kernels/error_bounds.h"

namespace mpc::test {

/// As ArithmeticErrors, for "attention" and "attention_grad". Notation: see error_bounds.cc.
std::vector<std::optional<ElementErrors>> AttentionErrors(const op_cases::OpCase& op_case,
                                                          const std::vector<reference::Tensor>& inputs,
                                                          const std::vector<reference::Tensor>& exact);
std::vector<std::optional<ElementErrors>> AttentionGradErrors(const op_cases::OpCase& op_case,
                                                              const std::vector<reference::Tensor>& inputs);

}  // namespace mpc::test
