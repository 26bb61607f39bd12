// Numbers that become elements of a column's type. Not part of the public API.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::internal {

/// OK if `dtype` can hold `value`: a whole number in its range, 0 or 1 of bool. A floating type rounds, but makes no
/// finite value infinite. The error (INVALID_ARGUMENT) begins with `where`, and says what the type takes.
absl::Status CheckHeld(const std::string& where, double value, DType dtype);

}  // namespace mpc::data::internal
