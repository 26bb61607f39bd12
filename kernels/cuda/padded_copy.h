// Copies between matrices whose rows are stored at different distances.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/kernel.h"
#include "kernels/cuda/storage.h"

namespace mpc::cuda {

/// A matrix of 16-bit elements. A row begins `stride` elements behind the one before.
struct StridedMatrix {
  std::int64_t rows, width, stride;
};

/// Copies the corner that both have and clears the rest of `to`. What lies between its rows is left as it is. Neither
/// matrix touches the other.
absl::Status EnqueuePaddedCopy(const void* from, const StridedMatrix& from_matrix, void* to,
                               const StridedMatrix& to_matrix, LaunchQueue& queue);

/// to[row, column] = from[row, column] + bias[column], rounded once. `from_stride` elements lie between the rows of
/// `from`; `to` is [rows, width].
absl::Status EnqueueRoundedSum(const float* from, std::int64_t from_stride, const Source& bias, const Sink& to,
                               std::int64_t rows, std::int64_t width, LaunchQueue& queue);

}  // namespace mpc::cuda
