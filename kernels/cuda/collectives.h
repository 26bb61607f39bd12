// What a GPU computes by itself in an operation over several processes. The exchange between processes is the runtime's
// (runtime/cuda/nccl_group.h).
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/kernel.h"
#include "kernels/dtype.h"

namespace mpc::cuda {

/// Enqueues output[i] = low[i] + high[i] for `elements` elements of f32, f16 or bf16. They are added in f32 and rounded
/// once to nearest even. A sum that is not a number has one pattern of bits. `output` may be an operand; operands are
/// 16-byte aligned.
absl::Status EnqueueSum(LaunchQueue& queue, DType dtype, const void* low, const void* high, void* output,
                        std::int64_t elements);

/// Enqueues *place = number. `place` is memory of the device, or pinned memory of the host.
absl::Status EnqueueNumber(LaunchQueue& queue, std::int32_t* place, std::int32_t number);

/// Where a device is, as it tells the host in pinned memory.
struct DevicePlace {
  std::int32_t number;   ///< number of the exchange that it has come to last; 0: none
  std::int32_t changes;  ///< number of times that it has come to an exchange or left one; it wraps around
  std::int32_t inside;   ///< 1 while it is at the exchange, then 0
};

/// Enqueues that the device comes to exchange `number`, or leaves it.
absl::Status EnqueuePlace(LaunchQueue& queue, DevicePlace* place, std::int32_t number, bool comes);

}  // namespace mpc::cuda
