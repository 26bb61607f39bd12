// Elements that were loaded but not yet widened. A thread that loads several before it widens the first has all loads
// on their way at once. The compiler would not arrange that: the branch on the type lies between a load and its use,
// and loads are not moved over branches.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/cuda/storage.h"

namespace mpc::cuda {

/// kWidth elements, 1 or kVector, as they are stored.
template <int kWidth>
struct StoredElements {
  static_assert(kWidth == kVector);
  Bits128 low, high;  ///< `high` is used by f32 alone
};
template <>
struct StoredElements<1> {
  std::uint32_t bits;
};

/// As LoadElements.
template <int kWidth>
__device__ __forceinline__ StoredElements<kWidth> LoadStored(const Source& source, std::int64_t index) {
  const bool wide = source.dtype == DType::kF32;
  if constexpr (kWidth == 1) {
    return {wide ? static_cast<const std::uint32_t*>(source.data)[index]
                 : static_cast<const std::uint16_t*>(source.data)[index]};
  } else {
    const auto* from = reinterpret_cast<const Bits128*>(static_cast<const unsigned char*>(source.data) +
                                                        index * (wide ? sizeof(float) : sizeof(std::uint16_t)));
    StoredElements<kWidth> stored;
    stored.low = from[0];
    stored.high = wide ? from[1] : Bits128{};
    return stored;
  }
}

template <int kWidth>
__device__ __forceinline__ void WidenStored(const Source& source, const StoredElements<kWidth>& stored,
                                            float (&values)[kWidth]) {
  if constexpr (kWidth == 1) {
    values[0] = source.dtype == DType::kF32 ? std::bit_cast<float>(stored.bits)
                                            : source.Widen(static_cast<std::uint16_t>(stored.bits));
  } else if (source.dtype == DType::kF32) {
    for (int i = 0; i < 4; ++i) {
      values[i] = std::bit_cast<float>(stored.low.words[i]);
      values[4 + i] = std::bit_cast<float>(stored.high.words[i]);
    }
  } else {
    for (int i = 0; i < kVector; ++i) {
      values[i] = source.Widen(static_cast<std::uint16_t>(stored.low.words[i / 2] >> (i % 2 * 16)));
    }
  }
}

}  // namespace mpc::cuda
