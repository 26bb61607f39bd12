// What a .cu file is written in: CUDA C++ under nvcc, or the emulation that runs the same source on the host in tests.
// Kernels use only what follows, and begin with AwaitEarlierLaunches(). Indices: threadIdx.x, blockIdx, blockDim.x,
// gridDim. Barriers: __syncthreads(), __syncthreads_or(), __syncwarp(). Warp functions: __shfl_sync, __shfl_xor_sync,
// __shfl_down_sync, __ballot_sync, __any_sync, __all_sync. Bits: __popc. Atomics on integers: atomicAdd / atomicOr /
// atomicMin / atomicMax. Shared memory: MPC_SHARED_ARRAY and dynamic_shared<T>(). Shared memory is garbage when a block
// begins. Kernels use no floating-point atomics, since their order is chance. They use no inline PTX, no cooperative
// groups and no spinning across blocks, since the emulation could not show their errors.
#pragma once

#include <cstdint>

/// Before a loop over an array of registers: the index must be a constant where the compiler's own threshold would keep
/// the loop.
#ifdef __CUDACC__
#define MPC_UNROLL _Pragma("unroll")
#else
#define MPC_UNROLL
#endif

#ifdef MPC_CUDA_EMULATION
#include "tests/cuda_emulation/device_language.h"
#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

/// `type name[count]` shared by the block.
#define MPC_SHARED_ARRAY(type, name, count) __shared__ type name[count]

namespace mpc::cuda {

/// The launch's dynamic shared memory, 16-byte aligned.
template <typename T>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<T*>(dynamic_shared_bytes);
}

/// The first statement of every kernel: what was launched before has ended, and its writes are seen. So a launch may be
/// prepared while the one before it still runs (KernelFunction::awaits_earlier).
__device__ __forceinline__ void AwaitEarlierLaunches() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

}  // namespace mpc::cuda

#endif

namespace mpc::cuda {

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kFullWarp = 0xffffffffu;

}  // namespace mpc::cuda
