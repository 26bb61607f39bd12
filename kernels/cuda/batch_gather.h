// A step's batch from a data set that lies in device memory: no copy from the host, and nothing that a replay would
// have to be told. No CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/kernel.h"

namespace mpc::cuda {

/// Row i of the batch is row permutation[(*batch_index * batch_rows + i) % rows] of the data set. All pointers are to
/// device memory. `permutation` holds `rows` numbers below `rows`; *batch_index is at least 0.
struct BatchGather {
  const void* data = nullptr;  ///< [rows, row_bytes]
  std::int64_t rows = 0;       ///< at least 1
  std::size_t row_bytes = 0;
  const std::int64_t* permutation = nullptr;
  const std::int32_t* batch_index = nullptr;  ///< the batch's number in its epoch, read in every step
  void* batch = nullptr;                      ///< [batch_rows, row_bytes]; does not overlap the data set
  std::int64_t batch_rows = 0;
};

/// Copies the batch. INVALID_ARGUMENT without rows to take it from.
absl::Status EnqueueBatchGather(const BatchGather& gather, LaunchQueue& queue);

}  // namespace mpc::cuda
