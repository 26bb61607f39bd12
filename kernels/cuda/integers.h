// Reading integer operands.
#pragma once

#include <cstdint>

#include "kernels/cuda/device_language.h"
#include "kernels/dtype.h"

namespace mpc::cuda {

/// An i32 or i64 operand.
struct IntegerSource {
  const void* data;
  DType dtype;

  __device__ __forceinline__ std::int64_t Load(std::int64_t index) const {
    return dtype == DType::kI32 ? static_cast<const std::int32_t*>(data)[index]
                                : static_cast<const std::int64_t*>(data)[index];
  }
};

}  // namespace mpc::cuda
