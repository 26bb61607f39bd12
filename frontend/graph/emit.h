// Helpers that the functions on tensors are made of. Not part of the public API.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/graph/tensor.h"
#include "kernels/attributes.h"

namespace mpc::internal {

/// Records operation `op` ("conv2d") in the current trace, or runs it at once on concrete tensors. `result_dtype` is
/// the type of results that operands do not give, such as a cast's. On an error there are four results, whatever the
/// operation has. Without a trace each carries the error; else the trace does.
std::vector<Tensor> EmitAll(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes,
                            std::optional<DType> result_dtype = std::nullopt);

/// The first result.
Tensor Emit(std::string_view op, const std::vector<Tensor>& operands, const Attributes& attributes = {});

/// Reports an error of a front-end function (INVALID_ARGUMENT): in the trace if there is one, else in the returned
/// tensor. In a trace that tensor has `shape` and stands for the result.
Tensor FailWith(const std::string& message, const Shape& shape);

/// Whether a tensor of the shape `from` may stand for one of the shape `to` in element-wise operations.
bool BroadcastsTo(const Shape& from, const Shape& to);

/// Whether f32 holds `value` as a finite number.
bool IsFiniteInF32(double value);

/// Empty if `epsilon` is at least 0 and finite in f32; else the error of the norm `name`.
std::string EpsilonError(std::string_view name, double epsilon);

}  // namespace mpc::internal
