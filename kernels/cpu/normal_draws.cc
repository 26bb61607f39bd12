// Box and Muller's radius and angle by series that the compiler vectorises. The result is within kNormalDistance of
// philox.h's definition, which the C library computes. Both ends of that interval are rounded to f32. Where they agree,
// the definition rounds to the same number (Ziv's test, TOMS 17, 1991). About one draw in 2^18 does not pass and is
// computed as defined.
#include "kernels/cpu/normal_draws.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/scalar/philox.h"

namespace mpc::cpu {
namespace {

/// A generator word of each block: what PhiloxRounds computes with.
struct WordOfBlocks {
  std::array<std::uint32_t, kBlocksAbreast> of;

  WordOfBlocks() = default;
  explicit WordOfBlocks(std::uint32_t word) { of.fill(word); }
  friend WordOfBlocks operator^(const WordOfBlocks& a, const WordOfBlocks& b) {
    WordOfBlocks result;
    for (std::size_t i = 0; i < kBlocksAbreast; ++i) result.of[i] = a.of[i] ^ b.of[i];
    return result;
  }
  friend WordOfBlocks operator+(const WordOfBlocks& a, std::uint32_t b) {
    WordOfBlocks result;
    for (std::size_t i = 0; i < kBlocksAbreast; ++i) result.of[i] = a.of[i] + b;
    return result;
  }
};

struct WideWordOfBlocks {
  WordOfBlocks upper, lower;
};

WideWordOfBlocks MultiplyWide(const WordOfBlocks& a, const WordOfBlocks& b) {
  WideWordOfBlocks product;
  for (std::size_t i = 0; i < kBlocksAbreast; ++i) {
    const std::uint64_t wide = std::uint64_t{a.of[i]} * b.of[i];
    product.upper.of[i] = static_cast<std::uint32_t>(wide >> 32);
    product.lower.of[i] = static_cast<std::uint32_t>(wide);
  }
  return product;
}

/// A polynomial, its coefficients from the highest power down. It has no loop, since the compiler vectorises only the
/// loop around it.
template <typename... Coefficients>
inline double Polynomial(double x, double highest, Coefficients... coefficients) {
  double sum = highest;
  ((sum = std::fma(sum, x, coefficients)), ...);
  return sum;
}

/// `word` as f64, by way of the signed conversion that AVX2 has.
inline double ToDouble(std::uint32_t word) {
  return static_cast<double>(static_cast<std::int32_t>(word ^ 0x80000000u)) + 0x1p31;
}

/// log(m * 2^-32) for 1 <= m <= 2^32: m = f * 2^k with f in [11/16, 11/8), log f = 2 atanh(s), s = (f - 1) / (f + 1).
/// s^2 <= 0.0344, so that the first term left out is below 2^-58 of the sum. Terms do not cancel: k = 32 leaves log f
/// alone, which f - 1 gives exactly, and any other k * log 2 is twice as large.
inline double LogOfFraction(double m) {
  constexpr std::uint64_t kLeast = 0x3FE6000000000000;  // 11/16
  constexpr std::uint64_t kExponent = 0xFFF0000000000000;
  constexpr double kLog2 = 0.693147180559945309417;
  const auto bits = std::bit_cast<std::uint64_t>(m);
  const std::uint64_t above = bits - kLeast;
  const double f = std::bit_cast<double>(bits - (above & kExponent));
  const double k = std::bit_cast<double>((above >> 52) | 0x4330000000000000) - (0x1p52 + 32);
  const double s = (f - 1.0) / (f + 1.0);
  const double series = Polynomial(s * s, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7,
                                   1.0 / 5, 1.0 / 3, 1.0);
  return std::fma(k, kLog2, 2.0 * s * series);
}

struct Direction {
  double cosine, sine;
};

/// Cosine and sine of `turn` * 2^-32 turns. The rest of a quarter is at most an eighth of a turn, x^2 <= 0.617; the
/// Taylor series' first terms left out are below 2^-57.
inline Direction DirectionOf(std::uint32_t turn) {
  const std::uint32_t quarter = (turn + 0x20000000u) >> 30;
  const auto rest = static_cast<std::int32_t>(turn - (quarter << 30));
  const double x = static_cast<double>(rest) * (6.283185307179586476925 * 0x1p-32);
  const double square = x * x;
  const double sine = x * Polynomial(square, 1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800,
                                     -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0);
  const double cosine = Polynomial(square, -1.0 / 6402373705728000, 1.0 / 20922789888000, -1.0 / 87178291200,
                                   1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -1.0 / 2, 1.0);
  const bool swapped = (quarter & 1) != 0;
  const double along = swapped ? sine : cosine;
  const double across = swapped ? cosine : sine;
  return {quarter == 1 || quarter == 2 ? -along : along, (quarter & 2) != 0 ? -across : across};
}

/// Rounds a + b * normal to f32. False where the definition's normal might round to another number.
inline bool Round(double a, double b, double normal, double distance, float& value) {
  const double exact = a + b * normal;
  value = static_cast<float>(exact - distance);
  return value == static_cast<float>(exact + distance);
}

/// Bounds |(a + b * n) - (a + b * m)| for |n - m| <= kNormalDistance with both sums rounded in f64: |n| < 7.
double Distance(double a, double b) { return std::abs(b) * (kNormalDistance + 0x1p-48) + std::abs(a) * 0x1p-50; }

}  // namespace

WordsAbreast PhiloxBlocks(std::uint64_t seed, std::uint32_t step, std::uint32_t call_site, std::uint64_t first) {
  std::array<WordOfBlocks, 4> counter{WordOfBlocks(0), WordOfBlocks(0), WordOfBlocks(step), WordOfBlocks(call_site)};
  for (std::size_t i = 0; i < kBlocksAbreast; ++i) {
    counter[0].of[i] = static_cast<std::uint32_t>(first + i);
    counter[1].of[i] = static_cast<std::uint32_t>((first + i) >> 32);
  }
  counter = PhiloxRounds<WordOfBlocks>(
      counter, {WordOfBlocks(static_cast<std::uint32_t>(seed)), WordOfBlocks(static_cast<std::uint32_t>(seed >> 32))});
  return {counter[0].of, counter[1].of, counter[2].of, counter[3].of};
}

void ApproximateNormals(const std::array<std::uint32_t, kBlocksAbreast>& bits0,
                        const std::array<std::uint32_t, kBlocksAbreast>& bits1, NormalsAbreast& of_cosine,
                        NormalsAbreast& of_sine) {
#pragma omp simd
  for (std::size_t i = 0; i < kBlocksAbreast; ++i) {
    const double radius = std::sqrt(-2.0 * LogOfFraction(ToDouble(bits0[i]) + 1.0));
    const Direction direction = DirectionOf(bits1[i]);
    of_cosine[i] = radius * direction.cosine;
    of_sine[i] = radius * direction.sine;
  }
}

void FillNormal(const Draw& draw, std::uint64_t seed, std::int64_t offset, std::int64_t size, float* values) {
  constexpr std::size_t kAbreast = 4 * kBlocksAbreast;
  const auto [stream, a, b] = draw;
  const double mean = a;
  const double deviation = b;
  const double distance = Distance(mean, deviation);
  for (std::int64_t start = 0; start < size; start += kAbreast) {
    const std::uint64_t first = static_cast<std::uint64_t>(offset + start);
    const WordsAbreast words = PhiloxBlocks(seed, 0, stream, first / 4);
    std::array<NormalsAbreast, 4> normals;
    ApproximateNormals(words[0], words[1], normals[0], normals[1]);
    ApproximateNormals(words[2], words[3], normals[2], normals[3]);
    float drawn[kAbreast];
    bool certain[kAbreast];
    for (std::size_t word = 0; word < 4; ++word) {
      for (std::size_t i = 0; i < kBlocksAbreast; ++i) {
        const std::size_t element = 4 * i + word;
        certain[element] = Round(mean, deviation, normals[word][i], distance, drawn[element]);
      }
    }
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(size - start, kAbreast));
    for (std::size_t i = 0; i < count; ++i) {
      values[static_cast<std::size_t>(start) + i] = certain[i] ? drawn[i] : RandomNormal(seed, stream, first + i, a, b);
    }
  }
}

void FillTruncatedNormal(const Draw& draw, std::uint64_t seed, std::int64_t offset, std::int64_t size, float* values) {
  const auto [stream, a, b] = draw;
  const double mean = a;
  const double deviation = b;
  const double distance = Distance(mean, deviation);
  for (std::int64_t start = 0; start < size; start += kBlocksAbreast) {
    const std::uint64_t first = static_cast<std::uint64_t>(offset + start);
    const WordsAbreast words = PhiloxBlocks(seed, 0, stream, first);
    NormalsAbreast normals, unused;
    ApproximateNormals(words[0], words[1], normals, unused);
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(size - start, kBlocksAbreast));
    for (std::size_t i = 0; i < count; ++i) {
      float& value = values[static_cast<std::size_t>(start) + i];
      const bool within = std::abs(normals[i]) <= 2.0 - kNormalDistance;
      if (within && Round(mean, deviation, normals[i], distance, value)) continue;
      value = RandomTruncatedNormal(seed, stream, first + i, a, b);
    }
  }
}

}  // namespace mpc::cpu
