#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device_language.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/padded_copy.h"

namespace mpc::cuda {
namespace {

constexpr int kPaddedCopyThreads = 256;
constexpr int kPaddedCopyLoads = 16;  ///< loads of a thread that are in flight together
constexpr std::int64_t kPaddedCopySegment = std::int64_t{kPaddedCopyThreads} * kPaddedCopyLoads;

/// blockIdx.x chooses a segment of a row. Neighbouring threads move neighbouring elements: rows need not be aligned.
/// `load(row, column)` for each element of `rows` rows of `width`; `store(row, column, value)` behind all of a thread.
template <typename Value, typename Load, typename Store>
__device__ __forceinline__ void MoveRows(std::int64_t rows, std::int64_t width, const Load& load, const Store& store) {
  const std::int64_t first = blockIdx.x * kPaddedCopySegment + threadIdx.x;
  for (std::int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    Value values[kPaddedCopyLoads];
    MPC_UNROLL
    for (int i = 0; i < kPaddedCopyLoads; ++i) {
      const std::int64_t column = first + i * kPaddedCopyThreads;
      values[i] = column < width ? load(row, column) : Value{0};
    }
    MPC_UNROLL
    for (int i = 0; i < kPaddedCopyLoads; ++i) {
      const std::int64_t column = first + i * kPaddedCopyThreads;
      if (column < width) store(row, column, values[i]);
    }
  }
}

__global__ void __launch_bounds__(kPaddedCopyThreads)
    PaddedCopyKernel(const std::uint16_t* from, StridedMatrix from_matrix, std::uint16_t* to, StridedMatrix to_matrix) {
  AwaitEarlierLaunches();
  MoveRows<std::uint16_t>(
      to_matrix.rows, to_matrix.width,
      [&](std::int64_t row, std::int64_t column) {
        const bool inside = row < from_matrix.rows && column < from_matrix.width;
        return inside ? from[row * from_matrix.stride + column] : std::uint16_t{0};
      },
      [&](std::int64_t row, std::int64_t column, std::uint16_t value) { to[row * to_matrix.stride + column] = value; });
}

__global__ void __launch_bounds__(kPaddedCopyThreads)
    RoundedSumKernel(const float* from, std::int64_t from_stride, Source bias, Sink to, std::int64_t rows,
                     std::int64_t width) {
  AwaitEarlierLaunches();
  MoveRows<float>(
      rows, width, [&](std::int64_t row, std::int64_t column) { return from[row * from_stride + column]; },
      [&](std::int64_t row, std::int64_t column, float value) {
        to.Store(row * width + column, value + bias.Load(column));
      });
}

LaunchShape ShapeOf(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kMostGridRows = 65535;
  LaunchShape shape;
  shape.threads = kPaddedCopyThreads;
  shape.blocks_x = BlocksFor(width, kPaddedCopySegment);
  shape.blocks_y = static_cast<unsigned>(std::min(rows, kMostGridRows));
  return shape;
}

}  // namespace

absl::Status EnqueuePaddedCopy(const void* from, const StridedMatrix& from_matrix, void* to,
                               const StridedMatrix& to_matrix, LaunchQueue& queue) {
  return launch(queue, &PaddedCopyKernel, ShapeOf(to_matrix.rows, to_matrix.width),
                static_cast<const std::uint16_t*>(from), from_matrix, static_cast<std::uint16_t*>(to), to_matrix);
}

absl::Status EnqueueRoundedSum(const float* from, std::int64_t from_stride, const Source& bias, const Sink& to,
                               std::int64_t rows, std::int64_t width, LaunchQueue& queue) {
  return launch(queue, &RoundedSumKernel, ShapeOf(rows, width), from, from_stride, bias, to, rows, width);
}

}  // namespace mpc::cuda
