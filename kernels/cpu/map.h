// One loop for everything that computes each element of a result from the same element of one operand.
#pragma once

#include <cstdint>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {

/// y = apply(x) for every element, computed in f32 and rounded once to y's type; x may lie where y does. `apply` is
/// inlined into the loop.
template <typename Apply>
void Map(Source x, Sink y, std::int64_t count, const Apply& apply) {
  ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
    BlockBuffer x_buffer, y_buffer;
    const float* in = x.Load(offset, size, x_buffer.values);
    float* out = y.Target(offset, y_buffer.values);
#pragma omp simd
    for (std::int64_t i = 0; i < size; ++i) out[i] = apply(in[i]);
    y.Commit(offset, size, out);
  });
}

}  // namespace mpc::cpu
