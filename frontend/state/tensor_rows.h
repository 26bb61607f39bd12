// Rows and axes of concrete tensors: what moves between the layouts of two frameworks. Not part of the public API.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc::internal {

/// A matrix with its axes exchanged.
Tensor Transposed(const Tensor& matrix);

/// The rows (first axis) of all tensors, one behind the other. There is at least one; all have rank 1 and more, one
/// element type and equal further axes.
Tensor JoinedRows(const std::vector<Tensor>& tensors);

/// `count` rows from `begin` on, which the tensor has.
Tensor RowsOf(const Tensor& tensor, std::int64_t begin, std::int64_t count);

}  // namespace mpc::internal
