// Running Cells and operations on concrete tensors, outside a Model.
#pragma once

#include <string_view>
#include <vector>

#include "frontend/graph/tensor.h"
#include "kernels/attributes.h"

namespace mpc::internal {

/// Runs one operation on concrete tensors. On an error every result carries it.
std::vector<Tensor> RunOperation(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes,
                                 std::optional<DType> result_dtype);

}  // namespace mpc::internal
