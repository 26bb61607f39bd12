// Normal draws of kernels/scalar/philox.h, several abreast, to the bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace mpc::cpu {

/// Generator blocks that are drawn abreast.
inline constexpr std::size_t kBlocksAbreast = 16;
/// Word w of block i is words[w][i].
using WordsAbreast = std::array<std::array<std::uint32_t, kBlocksAbreast>, 4>;
using NormalsAbreast = std::array<double, kBlocksAbreast>;

/// PhiloxBlock of `kBlocksAbreast` blocks from `first` on.
WordsAbreast PhiloxBlocks(std::uint64_t seed, std::uint32_t step, std::uint32_t call_site, std::uint64_t first);

/// A bound on the distance of ApproximateNormals from NormalsFromBits.
inline constexpr double kNormalDistance = 0x1p-44;

/// NormalsFromBits of (bits0[i], bits1[i]) within kNormalDistance: in turns instead of radians, by series instead of
/// the C library's functions, which do not vectorise.
void ApproximateNormals(const std::array<std::uint32_t, kBlocksAbreast>& bits0,
                        const std::array<std::uint32_t, kBlocksAbreast>& bits1, NormalsAbreast& of_cosine,
                        NormalsAbreast& of_sine);

/// A draw of mpc.random from stream `stream`. `a` and `b` are the parameters of its distribution.
struct Draw {
  std::uint32_t stream;
  float a, b;
};

/// values[i] = RandomNormal(seed, stream, offset + i, a, b) for i < size; `offset` is a multiple of 4.
void FillNormal(const Draw& draw, std::uint64_t seed, std::int64_t offset, std::int64_t size, float* values);

/// values[i] = RandomTruncatedNormal(seed, stream, offset + i, a, b) for i < size.
void FillTruncatedNormal(const Draw& draw, std::uint64_t seed, std::int64_t offset, std::int64_t size, float* values);

}  // namespace mpc::cpu
