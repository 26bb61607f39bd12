// Helpers that the functions on tensors are made of. Not part of the public API.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph/tensor.h"
#include "kernels/attributes.h"

namespace mpc::internal {

/// Records operation `op` in the current trace, or runs it at once on concrete tensors. On an error every result
/// carries it.
std::vector<Tensor> EmitAll(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes,
                            std::optional<DType> result_dtype = std::nullopt);

/// The first result.
Tensor Emit(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes = {});

/// Reports an error of a front-end function: in the trace if there is one, else in the returned tensor.
Tensor FailWith(const std::string& message, const Shape& shape);

}  // namespace mpc::internal
