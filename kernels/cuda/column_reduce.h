// The column reduction skeleton: one result for each column of row-major matrices, combined over the rows. Examples are
// bias gradients and channels-last statistics. Neighbouring threads read neighbouring columns. The rows are shared out
// over the threads of a block and over blocks. Blocks leave partial values in the workspace for a second launch. Shapes
// alone decide how.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/storage.h"
#include "kernels/cuda/stored_elements.h"

namespace mpc::cuda {

inline constexpr int kColumnThreads = 256;

/// How `matrices` matrices of [rows, columns] are shared out. A block's threads are `lanes` threads along the columns
/// times kColumnThreads / lanes slices of the rows. A thread has one column or a vector of them.
struct ColumnPlan {
  std::int64_t matrices = 1, rows = 1, columns = 1;
  std::int64_t row_blocks = 1, rows_per_block = 1;
  std::int64_t tiles = 1;  ///< blocks that lie side by side along the columns
  int lanes = 1;
  bool vectors = false;  ///< `columns` is a multiple of kVector

  static constexpr std::int64_t kBlocks = 1056;  ///< enough to fill a device evenly: eight a multiprocessor of an H200

  /// Shares the rows out over `blocks` blocks where there are enough rows.
  static ColumnPlan For(std::int64_t matrices, std::int64_t rows, std::int64_t columns, std::int64_t blocks = kBlocks) {
    constexpr std::int64_t kRowsPerThread = 8;  // the least, where a block does not take all rows
    ColumnPlan plan;
    plan.matrices = matrices;
    plan.rows = rows;
    plan.columns = columns;
    plan.vectors = columns % kVector == 0;
    while (plan.lanes < kWarpSize && plan.lanes < plan.units()) plan.lanes *= 2;
    plan.tiles = (plan.units() + plan.lanes - 1) / plan.lanes;
    const std::int64_t slices = kColumnThreads / plan.lanes;
    const std::int64_t most = std::max<std::int64_t>(1, blocks / std::max<std::int64_t>(1, plan.tiles * matrices));
    const std::int64_t wanted = std::max<std::int64_t>(1, rows / (slices * kRowsPerThread));
    plan.rows_per_block = std::max<std::int64_t>(1, (rows + std::min(most, wanted) - 1) / std::min(most, wanted));
    plan.row_blocks = std::max<std::int64_t>(1, (rows + plan.rows_per_block - 1) / plan.rows_per_block);
    return plan;
  }

  __host__ __device__ std::int64_t units() const { return vectors ? columns / kVector : columns; }
  std::int64_t results() const { return matrices * columns; }

  /// Tiles by row blocks by matrices, as far as a grid reaches.
  LaunchShape Blocks() const {
    constexpr std::int64_t kMostMatrices = 65535;
    LaunchShape shape;
    shape.threads = kColumnThreads;
    shape.blocks_x = BlocksFor(tiles, 1);
    shape.blocks_y = BlocksFor(row_blocks, 1);
    shape.blocks_z = BlocksFor(std::min(matrices, kMostMatrices), 1);
    return shape;
  }

  /// The workspace for kValues values a column.
  template <typename Value>
  std::size_t workspace_bytes(int values) const {
    return row_blocks == 1 ? 0 : static_cast<std::size_t>(results() * row_blocks * values) * sizeof(Value);
  }
};

/// Combines the values of a block's slices, column by column. The threads of slice 0 get the result.
template <typename Op, int kWidth>
__device__ __forceinline__ void CombineSlices(int lanes, typename Op::Value (&values)[kWidth]) {
  using Value = typename Op::Value;
  const int thread = static_cast<int>(threadIdx.x);
  MPC_SHARED_ARRAY(Value, of_thread, kWidth * kColumnThreads);
  __syncthreads();  // all reads of an earlier call's values are done
  for (int i = 0; i < kWidth; ++i) of_thread[i * kColumnThreads + thread] = values[i];
  for (int half = kColumnThreads / 2; half >= lanes; half /= 2) {
    __syncthreads();
    if (thread >= half) continue;
    for (int i = 0; i < kWidth; ++i) {
      Value* const mine = of_thread + i * kColumnThreads + thread;
      values[i] = Op::Combine(values[i], mine[half]);
      *mine = values[i];
    }
  }
}

/// Rows that a thread loads before it uses the first: up to four, as registers allow.
template <typename Loaded>
__host__ __device__ constexpr int RowsAhead() {
  constexpr int kBytes = 144;
  return sizeof(Loaded) * 4 <= kBytes ? 4 : (sizeof(Loaded) * 2 <= kBytes ? 2 : 1);
}

template <int kWidth, typename Op, int kValues, typename Terms, typename Finish>
__global__ void __launch_bounds__(kColumnThreads, 2)
    ColumnReduceKernel(ColumnPlan plan, Terms terms, Finish finish, typename Op::Value* partial) {
  AwaitEarlierLaunches();
  const int lane = static_cast<int>(threadIdx.x) % plan.lanes;
  const int slice = static_cast<int>(threadIdx.x) / plan.lanes;
  const int slices = kColumnThreads / plan.lanes;
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * plan.lanes + lane) * kWidth;
  const bool inside = column < plan.columns;
  const std::int64_t row_block = blockIdx.y;
  for (std::int64_t matrix = blockIdx.z; matrix < plan.matrices; matrix += gridDim.z) {
    // ---- Values of the thread's rows
    typename Op::Value values[kValues][kWidth];
    for (int k = 0; k < kValues; ++k) {
      for (int i = 0; i < kWidth; ++i) values[k][i] = Op::Identity();
    }
    if (inside) {
      auto columns = terms.template ColumnsAt<kWidth>(matrix, column);
      const std::int64_t begin = row_block * plan.rows_per_block;
      const std::int64_t end = begin + plan.rows_per_block < plan.rows ? begin + plan.rows_per_block : plan.rows;
      constexpr int kAhead = RowsAhead<typename decltype(columns)::Loaded>();
      for (std::int64_t row = begin + slice; row < end; row += kAhead * slices) {
        typename decltype(columns)::Loaded loaded[kAhead];
        // Beyond the end the last row is loaded once more, and not used.
        MPC_UNROLL for (int i = 0; i < kAhead; ++i) {
          loaded[i] = columns.Load(row + i * slices < end ? row + i * slices : end - 1);
        }
        MPC_UNROLL for (int i = 0; i < kAhead; ++i) {
          if (row + i * slices < end) columns.Add(loaded[i], row + i * slices, values);
        }
      }
    }
    // ---- Values of the block's rows
    for (int k = 0; k < kValues; ++k) CombineSlices<Op>(plan.lanes, values[k]);
    if (slice != 0 || !inside) continue;
    // ---- Results, or partial values for ColumnFinishKernel
    for (int i = 0; i < kWidth; ++i) {
      if (plan.row_blocks == 1) {
        typename Op::Value result[kValues];
        for (int k = 0; k < kValues; ++k) result[k] = values[k][i];
        finish(matrix * plan.columns + column + i, result);
      } else {
        const std::int64_t first = (matrix * plan.row_blocks + row_block) * kValues;
        for (int k = 0; k < kValues; ++k) partial[(first + k) * plan.columns + column + i] = values[k][i];
      }
    }
  }
}

/// Threads of ColumnFinishKernel that read neighbouring columns; the others share out the row blocks.
inline constexpr int kFinishLanes = 8;

template <typename Op, int kValues, typename Finish>
__global__ void __launch_bounds__(kColumnThreads)
    ColumnFinishKernel(ColumnPlan plan, const typename Op::Value* partial, Finish finish) {
  AwaitEarlierLaunches();
  constexpr int kSlices = kColumnThreads / kFinishLanes;
  constexpr int kAhead = 4;  // loads of a thread that are on their way at once
  const int slice = static_cast<int>(threadIdx.x) / kFinishLanes;
  const std::int64_t results = plan.matrices * plan.columns;
  std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kFinishLanes;
  for (; first < results; first += static_cast<std::int64_t>(gridDim.x) * kFinishLanes) {
    const std::int64_t result = first + threadIdx.x % kFinishLanes;
    // ---- Values of the thread's row blocks
    typename Op::Value values[kValues];
    for (int k = 0; k < kValues; ++k) values[k] = Op::Identity();
    if (result < results) {
      const std::int64_t matrix = result / plan.columns;
      const typename Op::Value* from =
          partial + matrix * plan.row_blocks * kValues * plan.columns + result % plan.columns;
      for (std::int64_t block = slice; block < plan.row_blocks; block += kAhead * kSlices) {
        typename Op::Value loaded[kAhead][kValues];
        MPC_UNROLL for (int i = 0; i < kAhead; ++i) {
          for (int k = 0; k < kValues; ++k) {
            loaded[i][k] = block + i * kSlices < plan.row_blocks
                               ? from[((block + i * kSlices) * kValues + k) * plan.columns]
                               : Op::Identity();
          }
        }
        MPC_UNROLL for (int i = 0; i < kAhead; ++i) {
          for (int k = 0; k < kValues; ++k) values[k] = Op::Combine(values[k], loaded[i][k]);
        }
      }
    }
    // ---- Values of the column
    for (int k = 0; k < kValues; ++k) {
      typename Op::Value value[1] = {values[k]};
      CombineSlices<Op>(kFinishLanes, value);
      values[k] = value[0];
    }
    if (slice == 0 && result < results) finish(result, values);
  }
}

/// Computes kValues values for each column of each matrix, each combined by Op (kernels/scalar/reduction.h) from
/// Op::Identity() on. `terms.ColumnsAt<kWidth>(matrix, column)` returns the columns [column, column + kWidth); kWidth
/// is 1 or kVector. They have `Loaded Load(row)`, called for RowsAhead<Loaded>() rows before `Add(loaded, row,
/// Op::Value
/// (&values)[kValues][kWidth])` adds the terms of these one by one: a Loaded holds StoredElements. `finish(result,
/// values)`, result = matrix * columns + column, is called by one thread a column. `workspace` holds
/// plan.workspace_bytes<Op::Value>(kValues).
template <typename Op, int kValues, typename Terms, typename Finish>
absl::Status ColumnReduce(LaunchQueue& queue, const ColumnPlan& plan, const Terms& terms, const Finish& finish,
                          void* workspace) {
  if (plan.results() == 0) return absl::OkStatus();
  auto* partial = static_cast<typename Op::Value*>(workspace);
  LaunchShape shape = plan.Blocks();
  const absl::Status status =
      plan.vectors
          ? launch(queue, &ColumnReduceKernel<kVector, Op, kValues, Terms, Finish>, shape, plan, terms, finish, partial)
          : launch(queue, &ColumnReduceKernel<1, Op, kValues, Terms, Finish>, shape, plan, terms, finish, partial);
  if (!status.ok() || plan.row_blocks == 1) return status;
  shape = LaunchShape();
  shape.threads = kColumnThreads;
  shape.blocks_x = BlocksFor(plan.results(), kFinishLanes);
  return launch(queue, &ColumnFinishKernel<Op, kValues, Finish>, shape, plan, partial, finish);
}

}  // namespace mpc::cuda
