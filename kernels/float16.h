// f16 and bf16 storage types with exact conversions: widening is exact, narrowing rounds to nearest even. On a GPU one
// instruction converts; it may give a NaN another payload.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/host_device.h"

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

namespace mpc {

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits; largest finite value 65504.
struct Half {
  std::uint16_t bits = 0;

  Half() = default;
  MPC_HOST_DEVICE explicit Half(float value) : bits(FromFloat(value)) {}
  MPC_HOST_DEVICE explicit operator float() const { return ToFloat(bits); }

  MPC_HOST_DEVICE static std::uint16_t FromFloat(float value) {
#ifdef __CUDA_ARCH__
    return __half_as_ushort(__float2half_rn(value));
#endif
    const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
    const std::uint16_t sign = static_cast<std::uint16_t>((x >> 16) & 0x8000u);
    const std::uint32_t magnitude = x & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);   // NaN, made quiet
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520 rounds to inf
    if (magnitude < 0x38800000u) {
      // Below the smallest normal (2^-14): adding 0.5 aligns the fraction so that the adder rounds to even.
      const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
    }
    const std::uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }

  MPC_HOST_DEVICE static float ToFloat(std::uint16_t half) {
#ifdef __CUDA_ARCH__
    return __half2float(__ushort_as_half(half));
#endif
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
    const std::uint32_t magnitude = half & 0x7fffu;
    if (magnitude >= 0x7c00u) {
      return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    }
    if (magnitude < 0x400u) {
      // Subnormal: magnitude * 2^-24, exact in f32.
      const float value = static_cast<float>(magnitude) * 0x1p-24f;
      return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }
    return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  }
};

/// bfloat16: the upper half of an f32; 8 exponent and 7 fraction bits.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  MPC_HOST_DEVICE explicit BFloat16(float value) : bits(FromFloat(value)) {}
  MPC_HOST_DEVICE explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

  MPC_HOST_DEVICE static std::uint16_t FromFloat(float value) {
    const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
    if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((x >> 16) | 0x40u);
    return static_cast<std::uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
};

}  // namespace mpc
