// Passes over one contiguous row of any length, shared by softmax and cross-entropy.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/cpu/blocks.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::cpu {

/// Calls visit(start, size, values) for the blocks of the row of `extent` elements at `base`.
template <typename Visit>
void ForEachRowBlock(Source x, std::int64_t base, std::int64_t extent, const Visit& visit) {
  BlockBuffer buffer;
  for (std::int64_t start = 0; start < extent; start += kBlock) {
    const std::int64_t size = std::min(kBlock, extent - start);
    visit(start, size, x.Load(base + start, size, buffer.values));
  }
}

inline float RowMaximum(Source x, std::int64_t base, std::int64_t extent) {
  float largest = -std::numeric_limits<float>::infinity();
  ForEachRowBlock(x, base, extent, [&](std::int64_t, std::int64_t size, const float* values) {
    float block_largest = largest;
#pragma omp simd reduction(max : block_largest)
    for (std::int64_t i = 0; i < size; ++i) block_largest = values[i] > block_largest ? values[i] : block_largest;
    largest = block_largest;
  });
  return largest;
}

/// Sum of exp(x - shift). NaN elements, which RowMaximum passes over, make it NaN.
inline float RowSumExp(Source x, std::int64_t base, std::int64_t extent, float shift) {
  float sum = 0;
  ForEachRowBlock(x, base, extent, [&sum, shift](std::int64_t, std::int64_t size, const float* values) {
    float block_sum = 0;
#pragma omp simd reduction(+ : block_sum)
    for (std::int64_t i = 0; i < size; ++i) block_sum += scalar::Exp(values[i] - shift);
    sum += block_sum;
  });
  return sum;
}

}  // namespace mpc::cpu
