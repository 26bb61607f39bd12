// Rows of sums in f32, on their way into a result.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/blocks.h"

namespace mpc::cpu {

/// `count` rows of `columns` numbers.
struct FloatRows {
  const float* data;
  std::int64_t stride, count, columns;
};

/// Adds the row `addend` to each row unless it is null. Rounds the sums to the floating type `dtype`, as StoreFloats
/// (convert.h) does, and stores them.
inline void StoreRows(DType dtype, const FloatRows& rows, const float* addend, void* to, std::int64_t to_stride) {
  float sums[kBlock];
  for (std::int64_t r = 0; r < rows.count; ++r) {
    for (std::int64_t column = 0; column < rows.columns; column += kBlock) {
      const std::int64_t size = std::min(kBlock, rows.columns - column);
      const float* const row = rows.data + r * rows.stride + column;
      for (std::int64_t j = 0; addend != nullptr && j < size; ++j) sums[j] = row[j] + addend[column + j];
      StoreFloats(dtype, addend != nullptr ? sums : row, to, r * to_stride + column, size);
    }
  }
}

}  // namespace mpc::cpu
