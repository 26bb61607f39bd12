// The map skeleton: each element of a result is computed from the same element of its operands. A thread takes vectors
// of eight elements; the rest goes one by one. Tensors are 16-byte aligned. An output may lie where an input of its
// type does. A thread reads its elements before it writes them, and no other thread touches them.
#pragma once

#include <cstdint>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/storage.h"

namespace mpc::cuda {

inline constexpr int kMapThreads = 256;

/// One thread a vector. Tensors too small for a full block on each of an H200's multiprocessors get small blocks, so
/// that more of these share the work.
inline LaunchShape MapShape(std::int64_t count) {
  constexpr std::int64_t kFewElements = std::int64_t{132} * kMapThreads * kVector;
  LaunchShape shape;
  shape.threads = count < kFewElements ? kMapThreads / 4 : kMapThreads;
  shape.blocks_x = BlocksFor(count, shape.threads * kVector);
  return shape;
}

/// This thread's share of `count` elements: vector(first) for [first, first + kVector), element(i) for the rest.
template <typename VectorBody, typename ElementBody>
__device__ __forceinline__ void ForEachVector(std::int64_t count, const VectorBody& vector,
                                              const ElementBody& element) {
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t vectors = count / kVector;
  for (std::int64_t i = thread; i < vectors; i += threads) vector(i * kVector);
  for (std::int64_t i = vectors * kVector + thread; i < count; i += threads) element(i);
}

/// Up to three operands and one result, element by element: y = apply(x[0], x[1], ...).
template <int kCount>
struct MapOperands {
  static constexpr int kOperands = kCount;
  Source x[kCount];
  Sink y;
};

/// y[i] = apply(x0[i], ...) for i < count. `Operands` is MapOperands or has its fields with types of like functions;
/// `Apply` has `__device__ float operator()(float, ...) const`.
template <typename Operands, typename Apply>
__global__ void __launch_bounds__(kMapThreads, 4) MapKernel(Operands operands, Apply apply, std::int64_t count) {
  AwaitEarlierLaunches();
  constexpr int kOperands = Operands::kOperands;
  const auto call = [&](const float(&x)[kOperands]) {
    if constexpr (kOperands == 1) return apply(x[0]);
    if constexpr (kOperands == 2) return apply(x[0], x[1]);
    if constexpr (kOperands == 3) return apply(x[0], x[1], x[2]);
  };
  ForEachVector(
      count,
      [&](std::int64_t first) {
        float x[kOperands][kVector];
        float y[kVector];
        MPC_UNROLL
        for (int k = 0; k < kOperands; ++k) operands.x[k].LoadVector(first, x[k]);
        MPC_UNROLL
        for (int i = 0; i < kVector; ++i) {
          float element[kOperands];
          for (int k = 0; k < kOperands; ++k) element[k] = x[k][i];
          y[i] = call(element);
        }
        operands.y.StoreVector(first, y);
      },
      [&](std::int64_t i) {
        float element[kOperands];
        for (int k = 0; k < kOperands; ++k) element[k] = operands.x[k].Load(i);
        operands.y.Store(i, call(element));
      });
}

template <typename Operands, typename Apply>
absl::Status MapElements(LaunchQueue& queue, const Operands& operands, const Apply& apply, std::int64_t count) {
  return launch(queue, &MapKernel<Operands, Apply>, MapShape(count), operands, apply, count);
}

template <int kOperands, typename Apply>
absl::Status Map(LaunchQueue& queue, const MapOperands<kOperands>& operands, const Apply& apply, std::int64_t count) {
  return MapElements(queue, operands, apply, count);
}

/// A static function of one element, `Op::Apply`, as what a map applies.
template <typename Op>
struct Elementwise {
  __device__ __forceinline__ float operator()(float x) const { return Op::Apply(x); }
  __device__ __forceinline__ float operator()(float x0, float x1) const { return Op::Apply(x0, x1); }
};

}  // namespace mpc::cuda
