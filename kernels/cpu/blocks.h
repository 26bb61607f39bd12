// Reading and writing tensors of any floating storage type in blocks of f32. A kernel loads a block, computes in f32
// and stores it; f32 tensors are read and written where they lie, without a copy. A block is read completely before it
// is written, so an output may be the storage of an operand of the same spec.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/convert.h"
#include "kernels/tensor_spec.h"

namespace mpc::cpu {

/// Elements of a block: four f32 blocks fit half of a 32 KiB first-level cache.
inline constexpr std::int64_t kBlock = 1024;

struct BlockBuffer {
  alignas(64) float values[kBlock];
};

/// A floating operand.
struct Source {
  DType dtype;
  const void* data;

  /// Elements [offset, offset + count) as f32, in `buffer` unless they are stored as f32.
  const float* Load(std::int64_t offset, std::int64_t count, float* buffer) const {
    if (dtype == DType::kF32) return static_cast<const float*>(data) + offset;
    LoadFloats(dtype, data, offset, count, buffer);
    return buffer;
  }
  float ElementAt(std::int64_t index) const {
    float value;
    LoadFloats(dtype, data, index, 1, &value);
    return value;
  }
};

/// A floating result. Write f32 values to `Target`, then `Commit` them.
struct Sink {
  DType dtype;
  void* data;

  float* Target(std::int64_t offset, float* buffer) const {
    return dtype == DType::kF32 ? static_cast<float*>(data) + offset : buffer;
  }
  void Commit(std::int64_t offset, std::int64_t count, const float* buffer) const {
    if (dtype != DType::kF32) StoreFloats(dtype, buffer, data, offset, count);
  }
  void Set(std::int64_t index, float value) const { StoreFloats(dtype, &value, data, index, 1); }
};

/// Sum of `count` contiguous values in an order that depends on `count` alone.
inline float SumOf(const float* values, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += values[i];
  return sum;
}

}  // namespace mpc::cpu
