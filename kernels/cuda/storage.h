// Floating tensors of any storage type as f32. The type is a run-time field, not a template parameter. The branch is
// the same for all threads, so that none diverges. Each kernel is compiled once instead of once for every combination
// of types.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/cuda/device_language.h"
#include "kernels/dtype.h"
#include "kernels/float16.h"
#include "kernels/words.h"

namespace mpc::cuda {

/// Elements of one vector access: 16 bytes of f16, two times 16 of f32.
inline constexpr int kVector = 8;

/// Sixteen bytes, moved by one instruction.
struct alignas(16) Bits128 {
  std::uint32_t words[4];
};

/// A floating operand.
struct Source {
  const void* data;
  DType dtype;

  __device__ __forceinline__ float Load(std::int64_t index) const {
    if (dtype == DType::kF32) return static_cast<const float*>(data)[index];
    return Widen(static_cast<const std::uint16_t*>(data)[index]);
  }

  /// An element of this source's 16-bit type.
  __device__ __forceinline__ float Widen(std::uint16_t bits) const {
    return dtype == DType::kF16 ? Half::ToFloat(bits) : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

  /// Elements [index, index + kVector); `index` is a multiple of kVector and `data` 16-byte aligned.
  __device__ __forceinline__ void LoadVector(std::int64_t index, float (&values)[kVector]) const {
    if (dtype == DType::kF32) {
      const Bits128* from = reinterpret_cast<const Bits128*>(static_cast<const float*>(data) + index);
      const Bits128 low = from[0], high = from[1];
      for (int i = 0; i < 4; ++i) {
        values[i] = std::bit_cast<float>(low.words[i]);
        values[4 + i] = std::bit_cast<float>(high.words[i]);
      }
      return;
    }
    const Bits128 packed = *reinterpret_cast<const Bits128*>(static_cast<const std::uint16_t*>(data) + index);
    for (int i = 0; i < kVector; ++i) {
      const std::uint16_t bits = static_cast<std::uint16_t>(packed.words[i / 2] >> (i % 2 * 16));
      values[i] =
          dtype == DType::kF16 ? Half::ToFloat(bits) : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    }
  }
};

/// A floating result: f32 values are rounded once, to nearest even.
struct Sink {
  void* data;
  DType dtype;

  __device__ __forceinline__ void Store(std::int64_t index, float value) const {
    if (dtype == DType::kF32) {
      static_cast<float*>(data)[index] = value;
    } else {
      static_cast<std::uint16_t*>(data)[index] = Round(value);
    }
  }

  __device__ __forceinline__ void StoreVector(std::int64_t index, const float (&values)[kVector]) const {
    if (dtype == DType::kF32) {
      Bits128* to = reinterpret_cast<Bits128*>(static_cast<float*>(data) + index);
      Bits128 low, high;
      for (int i = 0; i < 4; ++i) {
        low.words[i] = std::bit_cast<std::uint32_t>(values[i]);
        high.words[i] = std::bit_cast<std::uint32_t>(values[4 + i]);
      }
      to[0] = low;
      to[1] = high;
      return;
    }
    Bits128 packed;
    for (int i = 0; i < 4; ++i) {
      packed.words[i] =
          static_cast<std::uint32_t>(Round(values[2 * i])) | static_cast<std::uint32_t>(Round(values[2 * i + 1])) << 16;
    }
    *reinterpret_cast<Bits128*>(static_cast<std::uint16_t*>(data) + index) = packed;
  }

  /// `value` as this sink's 16-bit type.
  __device__ __forceinline__ std::uint16_t Round(float value) const {
    return dtype == DType::kF16 ? Half::FromFloat(value) : BFloat16::FromFloat(value);
  }
};

/// kWidth elements from `index` on: one, or an aligned vector.
template <int kWidth>
__device__ __forceinline__ void LoadElements(const Source& source, std::int64_t index, float (&values)[kWidth]) {
  static_assert(kWidth == 1 || kWidth == kVector);
  if constexpr (kWidth == 1) values[0] = source.Load(index);
  if constexpr (kWidth == kVector) source.LoadVector(index, values);
}
template <int kWidth>
__device__ __forceinline__ void StoreElements(const Sink& sink, std::int64_t index, const float (&values)[kWidth]) {
  static_assert(kWidth == 1 || kWidth == kVector);
  if constexpr (kWidth == 1) sink.Store(index, values[0]);
  if constexpr (kWidth == kVector) sink.StoreVector(index, values);
}

/// Eight elements of any type, moved by as few instructions as there are. `Word` has the bits of an element.
template <typename Word>
struct alignas(sizeof(Word) == 1 ? 8 : 16) WordVector {
  Word words[kVector];
};

/// kWidth elements, as bits.
template <int kWidth, typename Word>
__device__ __forceinline__ void CopyWords(const Word* from, Word* to) {
  static_assert(kWidth == 1 || kWidth == kVector);
  if constexpr (kWidth == 1) *to = *from;
  if constexpr (kWidth == kVector) {
    *reinterpret_cast<WordVector<Word>*>(to) = *reinterpret_cast<const WordVector<Word>*>(from);
  }
}

/// kWidth elements of `bytes` bytes each (1, 2, 4 or 8), as bits: a NaN keeps its payload.
template <int kWidth>
__device__ __forceinline__ void CopyElements(int bytes, const void* from, std::int64_t from_index, void* to,
                                             std::int64_t to_index) {
  VisitWord(static_cast<std::size_t>(bytes), [&](auto word) {
    using Word = decltype(word);
    CopyWords<kWidth>(static_cast<const Word*>(from) + from_index, static_cast<Word*>(to) + to_index);
  });
}

}  // namespace mpc::cuda
