// Block conversions between f32 and the 16-bit storage types. Widening is exact, narrowing rounds to nearest even,
// NaN stays NaN. Vectorised: F16C for f16, integer arithmetic that the compiler vectorises for bf16.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#ifdef __F16C__
#include <immintrin.h>
#endif

#include "kernels/dtype.h"
#include "kernels/float16.h"

namespace mpc::cpu {

inline void ConvertToFloat(const float* source, float* target, std::int64_t count) {
  std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(float));
}

inline void ConvertToFloat(const Half* source, float* target, std::int64_t count) {
  std::int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(target + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i))));
  }
#endif
  for (; i < count; ++i) target[i] = static_cast<float>(source[i]);
}

inline void ConvertToFloat(const BFloat16* source, float* target, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = static_cast<float>(source[i]);
}

inline void ConvertFromFloat(const float* source, float* target, std::int64_t count) {
  std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(float));
}

inline void ConvertFromFloat(const float* source, Half* target, std::int64_t count) {
  std::int64_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
#endif
  for (; i < count; ++i) target[i] = Half(source[i]);
}

inline void ConvertFromFloat(const float* source, BFloat16* target, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    // BFloat16::FromFloat without its branch, so that the loop vectorises.
    const std::uint32_t x = std::bit_cast<std::uint32_t>(source[i]);
    const std::uint32_t rounded = (x + 0x7fffu + ((x >> 16) & 1u)) >> 16;
    const std::uint32_t quiet = (x >> 16) | 0x40u;
    target[i].bits = static_cast<std::uint16_t>((x & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
  }
}

/// `count` elements of floating type `dtype` (f32, f16, bf16) from element `offset` of `data`, as f32.
inline void LoadFloats(DType dtype, const void* data, std::int64_t offset, std::int64_t count, float* target) {
  switch (dtype) {
    case DType::kF16:
      return ConvertToFloat(static_cast<const Half*>(data) + offset, target, count);
    case DType::kBF16:
      return ConvertToFloat(static_cast<const BFloat16*>(data) + offset, target, count);
    default:
      return ConvertToFloat(static_cast<const float*>(data) + offset, target, count);
  }
}

/// Rounds `count` values to floating type `dtype` at element `offset` of `data`.
inline void StoreFloats(DType dtype, const float* source, void* data, std::int64_t offset, std::int64_t count) {
  switch (dtype) {
    case DType::kF16:
      return ConvertFromFloat(source, static_cast<Half*>(data) + offset, count);
    case DType::kBF16:
      return ConvertFromFloat(source, static_cast<BFloat16*>(data) + offset, count);
    default:
      return ConvertFromFloat(source, static_cast<float*>(data) + offset, count);
  }
}

}  // namespace mpc::cpu
