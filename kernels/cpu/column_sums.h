// Sums down the columns of a row-major [rows, columns] matrix: sums over leading axes, the gradients of PReLU's slopes.
// The rows are cut into groups by the shape alone. Each group is summed in order, then the groups are added in order.
// So the result does not depend on the thread count.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {

/// How a matrix is cut. Narrow rows are taken several at a time, as one *run* of contiguous elements, so that vectors
/// fill; wide ones are cut into column blocks.
struct ColumnTiling {
  std::int64_t rows = 1, columns = 1;
  std::int64_t rows_per_run = 1;
  std::int64_t column_block = 1, column_blocks = 1;
  std::int64_t rows_per_group = 1, groups = 1;

  static ColumnTiling For(std::int64_t rows, std::int64_t columns) {
    constexpr std::int64_t kGroupElements = 16 * 1024;
    ColumnTiling tiling;
    tiling.rows = rows;
    tiling.columns = columns;
    tiling.column_block = std::min(columns, kBlock / 2);
    tiling.column_blocks = (columns + tiling.column_block - 1) / tiling.column_block;
    if (tiling.column_blocks == 1) tiling.rows_per_run = std::max<std::int64_t>(1, kBlock / 2 / columns);
    const std::int64_t runs = (rows + tiling.rows_per_run - 1) / tiling.rows_per_run;
    const std::int64_t run_elements = tiling.rows_per_run * tiling.column_block;
    // At most 64 groups bound the workspace.
    const std::int64_t runs_per_group = std::max((kGroupElements + run_elements - 1) / run_elements, (runs + 63) / 64);
    tiling.rows_per_group = runs_per_group * tiling.rows_per_run;
    tiling.groups = (rows + tiling.rows_per_group - 1) / tiling.rows_per_group;
    return tiling;
  }

  /// Scratch floats for `sums` results a column.
  std::size_t partial_count(int sums) const { return static_cast<std::size_t>(groups * columns * sums); }
};

/// The column index of each element of a run: `values[i]` of a run that starts at `column` belongs to column
/// `column + i % columns`. Fills `target` (of kBlock / 2 elements) with the parameter of each element.
inline void ExpandOverRun(const ColumnTiling& tiling, const float* parameter, std::int64_t column, float* target) {
  const std::int64_t width = std::min(tiling.column_block, tiling.columns - column);
  for (std::int64_t row = 0; row < tiling.rows_per_run; ++row) {
    std::copy_n(parameter + column, width, target + row * width);
  }
}

/// Calls visit(task_state, offset, size) for the runs of rows [row_begin, row_end) within one column block.
template <typename Visit>
void ForEachRun(const ColumnTiling& tiling, std::int64_t row_begin, std::int64_t row_end, std::int64_t column,
                const Visit& visit) {
  const std::int64_t width = std::min(tiling.column_block, tiling.columns - column);
  for (std::int64_t row = row_begin; row < row_end; row += tiling.rows_per_run) {
    visit(row * tiling.columns + column, std::min(tiling.rows_per_run, row_end - row) * width);
  }
}

/// `kSums` sums a column. begin(column) returns a functor add(offset, size, sums) that adds a run's terms, element by
/// element, to sums[k][0 .. size). Writes totals[k][column] (null: not wanted). `partial`: tiling.partial_count(kSums).
template <int kSums, typename Begin>
void SumColumns(const ColumnTiling& tiling, float* partial, const std::array<float*, kSums>& totals,
                const Begin& begin) {
  ParallelFor(tiling.groups * tiling.column_blocks, tiling.rows * tiling.columns, [&](std::int64_t task) {
    const std::int64_t group = task / tiling.column_blocks;
    const std::int64_t column = task % tiling.column_blocks * tiling.column_block;
    const std::int64_t width = std::min(tiling.column_block, tiling.columns - column);
    float sums[kSums][kBlock / 2] = {};
    const auto add = begin(column);
    const std::int64_t row_begin = group * tiling.rows_per_group;
    ForEachRun(tiling, row_begin, std::min(tiling.rows, row_begin + tiling.rows_per_group), column,
               [&](std::int64_t offset, std::int64_t size) { add(offset, size, sums); });
    for (int k = 0; k < kSums; ++k) {
      float* target = partial + (group * kSums + k) * tiling.columns + column;
      std::copy_n(sums[k], width, target);
      for (std::int64_t row = 1; row < tiling.rows_per_run; ++row) {
        for (std::int64_t i = 0; i < width; ++i) target[i] += sums[k][row * width + i];
      }
    }
  });
  for (int k = 0; k < kSums; ++k) {
    if (totals[k] == nullptr) continue;
    std::copy_n(partial + k * tiling.columns, tiling.columns, totals[k]);
    for (std::int64_t group = 1; group < tiling.groups; ++group) {
      const float* from = partial + (group * kSums + k) * tiling.columns;
      for (std::int64_t i = 0; i < tiling.columns; ++i) totals[k][i] += from[i];
    }
  }
}

}  // namespace mpc::cpu
