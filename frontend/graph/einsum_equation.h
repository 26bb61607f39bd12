// The equation of einsum, read for operands of given shapes. Not part of the public API.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/tensor_spec.h"

namespace mpc::internal {

/// An axis: the code of its letter, or -1, -2, ... for the axes of "..." counted from the right.
using AxisLabel = int;

struct EinsumEquation {
  std::vector<std::vector<AxisLabel>> operands;  ///< one label an axis
  std::vector<AxisLabel> result;                 ///< distinct labels, each of some operand
  std::map<AxisLabel, std::int64_t> extents;     ///< extent of each label, where 1 stretches
};

/// Reads `equation` for operands of these shapes. Errors (INVALID_ARGUMENT): those of einsum.
absl::StatusOr<EinsumEquation> ReadEinsumEquation(const std::string& equation, const std::vector<Shape>& shapes);

}  // namespace mpc::internal
