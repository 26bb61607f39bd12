// What an error says, for matchers.
#pragma once

#include <string>

#include "frontend/graph/tensor.h"

namespace mpc::testing {

/// Empty where there is none.
inline std::string ErrorOf(const absl::Status& status) { return std::string(status.message()); }
inline std::string ErrorOf(const Tensor& tensor) { return ErrorOf(tensor.status()); }

}  // namespace mpc::testing
