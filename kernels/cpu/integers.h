// Reading integer operands.
#pragma once

#include <cstdint>

#include "kernels/dtype.h"

namespace mpc::cpu {

/// Element `index` of an i32 or i64 tensor.
inline std::int64_t IntegerAt(DType dtype, const void* data, std::int64_t index) {
  return dtype == DType::kI32 ? static_cast<const std::int32_t*>(data)[index]
                              : static_cast<const std::int64_t*>(data)[index];
}

}  // namespace mpc::cpu
