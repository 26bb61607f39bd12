// Reductions over the threads of a warp or of a block: a sum, a maximum, the position of a maximum. The order in which
// values meet depends on the number of threads alone. Every thread gets the same bits.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/cuda/device_language.h"
#include "kernels/scalar/reduction.h"

namespace mpc::cuda {

/// `value` of the lane whose index differs in the bits of `lanes`. T is trivially copyable, of whole 32-bit words.
template <typename T>
__device__ __forceinline__ T ShuffleXor(T value, int lanes) {
  static_assert(sizeof(T) % sizeof(unsigned) == 0);
  struct Words {
    unsigned at[sizeof(T) / sizeof(unsigned)];
  };
  Words words = std::bit_cast<Words>(value);
  for (unsigned& word : words.at) word = __shfl_xor_sync(kFullWarp, word, lanes);
  return std::bit_cast<T>(words);
}

/// The values of a warp's lanes, all of which call it, combined by an operation of kernels/scalar/reduction.h.
template <typename Op>
__device__ __forceinline__ typename Op::Value WarpReduce(typename Op::Value value) {
  for (int lanes = kWarpSize / 2; lanes > 0; lanes /= 2) value = Op::Combine(value, ShuffleXor(value, lanes));
  return value;
}

/// The values of a block's kThreads threads, all of which call it: warp by warp.
template <typename Op, int kThreads>
__device__ __forceinline__ typename Op::Value BlockReduce(typename Op::Value value) {
  using Value = typename Op::Value;
  constexpr int kWarps = kThreads / kWarpSize;
  MPC_SHARED_ARRAY(Value, of_warp, kWarps);
  value = WarpReduce<Op>(value);
  __syncthreads();  // all reads of an earlier call's results are done
  if (threadIdx.x % kWarpSize == 0) of_warp[threadIdx.x / kWarpSize] = value;
  __syncthreads();
  value = of_warp[0];
  for (int warp = 1; warp < kWarps; ++warp) value = Op::Combine(value, of_warp[warp]);
  return value;
}

/// The reduction for a team of kTeam threads that share a row: a warp, or a whole block.
template <typename Op, int kTeam>
__device__ __forceinline__ typename Op::Value TeamReduce(typename Op::Value value) {
  if constexpr (kTeam == kWarpSize) return WarpReduce<Op>(value);
  if constexpr (kTeam != kWarpSize) return BlockReduce<Op, kTeam>(value);
}

}  // namespace mpc::cuda
