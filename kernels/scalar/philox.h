// Philox-4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011). A draw depends on its key and counter alone, never on threads, layout or fusion.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "kernels/host_device.h"
#include "kernels/scalar/number.h"

namespace mpc {

/// Four independent uniform 32-bit words for one (key, counter). `U` is std::uint32_t, or a number of the code
/// generator (see kernels/scalar/number.h).
template <typename U>
MPC_HOST_DEVICE inline std::array<U, 4> PhiloxRounds(std::array<U, 4> counter, std::array<U, 2> key) {
  using scalar::MultiplyWide;
  for (int round = 0; round < 10; ++round) {
    const auto product0 = MultiplyWide(counter[0], U(0xD2511F53u));
    const auto product1 = MultiplyWide(counter[2], U(0xCD9E8D57u));
    counter = {product1.upper ^ counter[1] ^ key[0], product1.lower, product0.upper ^ counter[3] ^ key[1],
               product0.lower};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

MPC_HOST_DEVICE inline std::array<std::uint32_t, 4> Philox4x32(std::array<std::uint32_t, 4> counter,
                                                               std::array<std::uint32_t, 2> key) {
  return PhiloxRounds(counter, key);
}

/// The words for element block `block` (four elements a block) of call site `call_site` at training step `step`.
MPC_HOST_DEVICE inline std::array<std::uint32_t, 4> PhiloxBlock(std::uint64_t seed, std::uint32_t step,
                                                                std::uint32_t call_site, std::uint64_t block) {
  return Philox4x32({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), step, call_site},
                    {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
}

/// Uniform in [0, 1) with 24 bits.
template <typename U>
MPC_HOST_DEVICE inline auto UniformFromBits(U bits) {
  using scalar::ToFloat;
  return ToFloat(bits >> 8) * 0x1p-24f;
}

/// Two standard normals from two independent uniform numbers (Box and Muller 1958): u in (0, 1], turns in [0, 1).
MPC_HOST_DEVICE inline std::array<double, 2> NormalsFromUniforms(double u, double turns) {
  const double angle = 6.283185307179586476925 * turns;
  const double radius = std::sqrt(-2.0 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// Two standard normals from two words, computed in f64 so that devices agree after rounding.
MPC_HOST_DEVICE inline std::array<double, 2> NormalsFromBits(std::uint32_t bits0, std::uint32_t bits1) {
  return NormalsFromUniforms((static_cast<double>(bits0) + 1.0) * 0x1p-32, static_cast<double>(bits1) * 0x1p-32);
}

// Element e of a random tensor takes word e % 4 of block e / 4. The functions below are the one definition of what a
// draw is; the reference and every device use them (or, on a GPU, their transcription).

/// Element `element` of mpc.random "uniform": a + (b - a) * u in f32, u in [0, 1). Rounding may return `b` itself.
MPC_HOST_DEVICE inline float RandomUniform(std::uint64_t seed, std::uint32_t stream, std::uint64_t element, float a,
                                           float b) {
  const std::array<std::uint32_t, 4> words = PhiloxBlock(seed, 0, stream, element / 4);
  return a + (b - a) * UniformFromBits(words[element % 4]);
}

/// Element `element` of mpc.random "normal": a + b * z in f64, rounded once to f32. Words (0, 1) give the normals of
/// elements 0 and 1 of the block, words (2, 3) those of elements 2 and 3.
MPC_HOST_DEVICE inline float RandomNormal(std::uint64_t seed, std::uint32_t stream, std::uint64_t element, float a,
                                          float b) {
  const std::array<std::uint32_t, 4> words = PhiloxBlock(seed, 0, stream, element / 4);
  const std::size_t pair = element % 4 / 2 * 2;
  const double normal = NormalsFromBits(words[pair], words[pair + 1])[element % 2];
  return static_cast<float>(static_cast<double>(a) + static_cast<double>(b) * normal);
}

/// Element `element` of mpc.random "truncated_normal": as "normal", redrawn until within two deviations. Each element
/// has a counter of its own (the element itself is the block) and the attempt takes the place of the step.
MPC_HOST_DEVICE inline float RandomTruncatedNormal(std::uint64_t seed, std::uint32_t stream, std::uint64_t element,
                                                   float a, float b) {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const std::array<std::uint32_t, 4> words = PhiloxBlock(seed, attempt, stream, element);
    const double normal = NormalsFromBits(words[0], words[1])[0];
    if (std::abs(normal) <= 2.0) {
      return static_cast<float>(static_cast<double>(a) + static_cast<double>(b) * normal);
    }
  }
}

/// Whether mpc.dropout with probability `p` keeps element `element`.
MPC_HOST_DEVICE inline bool DropoutKeeps(std::uint64_t seed, std::uint32_t step, std::uint32_t call_site,
                                         std::uint64_t element, float p) {
  return UniformFromBits(PhiloxBlock(seed, step, call_site, element / 4)[element % 4]) >= p;
}

/// The factor by which mpc.dropout multiplies a kept element.
MPC_HOST_DEVICE inline float DropoutScale(float p) { return 1.0f / (1.0f - p); }

}  // namespace mpc
