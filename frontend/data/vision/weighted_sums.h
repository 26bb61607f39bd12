// Weighted sums of pixels, one at a time and four at a time, with the vectors of every x86-64 processor (SSE2). Both
// give the same bits. Not part of the public API.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "frontend/data/vision/taps.h"

namespace mpc::data::vision::internal {

/// Channels of a pixel of colour. A quad has one value more, which counts for nothing.
constexpr std::int64_t kColours = 3;

/// Neighbouring values of a row in a Run.
constexpr std::int64_t kRunValues = 16;

/// Sums of floats.
struct FloatSums {
  using Weight = float;
  using Between = float;  ///< what is kept between the axes
  using Quad = __m128;
  struct Run {
    Quad quads[4] = {};
  };

  static absl::Span<const Weight> WeightsOf(const Taps::Place& place) { return place.weights; }
  /// Whether quads take the weights of all places.
  static bool QuadsTake(const Taps&) { return true; }

  static void Store(float sum, float* target) { *target = sum; }
  static void Store(float sum, std::uint8_t* target) {
    constexpr float kHalfLevel = 0.5f;
    *target = static_cast<std::uint8_t>(std::clamp(sum, 0.0f, 255.0f) + kHalfLevel);
  }

  static Quad Spread(Weight weight) { return _mm_set1_ps(weight); }
  static Quad Add(Quad sum, Quad weight, Quad values) { return sum + weight * values; }

  static Quad LoadPixel(const float* pixel) { return Quad{pixel[0], pixel[1], pixel[2], 0}; }
  static Quad LoadPixel(const std::uint8_t* pixel) {
    return Quad{static_cast<float>(pixel[0]), static_cast<float>(pixel[1]), static_cast<float>(pixel[2]), 0};
  }
  static void StorePixel(Quad sum, float* target) { std::memcpy(target, &sum, kColours * sizeof(float)); }

  static Run LoadRun(const float* values) {
    return {{_mm_loadu_ps(values), _mm_loadu_ps(values + 4), _mm_loadu_ps(values + 8), _mm_loadu_ps(values + 12)}};
  }
  static void StoreRun(const Run& sums, float* target) { std::memcpy(target, sums.quads, sizeof(sums.quads)); }
  static void StoreRun(const Run& sums, std::uint8_t* target) {
    const auto rounded = [&sums](int i) { return _mm_cvttps_epi32(sums.quads[i] + _mm_set1_ps(0.5f)); };
    // Both conversions clamp.
    const __m128i low = _mm_packs_epi32(rounded(0), rounded(1)), high = _mm_packs_epi32(rounded(2), rounded(3));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm_packus_epi16(low, high));
  }
};

/// Pillow's sums of u8 pixels in whole numbers. Each lane of a quad holds a pixel and 128 times that pixel, in 16 bits
/// each. A weight is a pair likewise, so that one instruction multiplies both and adds the products.
struct FixedSums {
  using Weight = std::int32_t;
  using Between = std::uint8_t;  ///< Pillow rounds between the axes
  using Quad = __m128i;
  struct Run {
    Quad quads[4] = {};
  };
  static constexpr std::int32_t kHalf = 1 << (Taps::kFixedBits - 1);

  static absl::Span<const Weight> WeightsOf(const Taps::Place& place) { return place.fixed; }
  static bool QuadsTake(const Taps& taps) { return taps.has_pairs(); }

  static void Store(std::int32_t sum, std::uint8_t* target) {
    *target = static_cast<std::uint8_t>(std::clamp((sum + kHalf) >> Taps::kFixedBits, 0, 255));
  }

  static Quad Spread(Weight weight) {
    const Taps::Pair pair = Taps::PairOf(weight);
    return _mm_set1_epi32(static_cast<std::int32_t>(static_cast<std::uint32_t>(pair.times_128) << 16 |
                                                    static_cast<std::uint16_t>(pair.rest)));
  }
  static Quad Add(Quad sum, Quad weight, Quad values) { return _mm_add_epi32(sum, _mm_madd_epi16(weight, values)); }

  static Quad LoadPixel(const std::uint8_t* pixel) {
    const std::int32_t bytes = pixel[0] | pixel[1] << 8 | pixel[2] << 16;
    return PairsOf(_mm_unpacklo_epi8(_mm_cvtsi32_si128(bytes), _mm_setzero_si128())).low;
  }
  static void StorePixel(Quad sum, std::uint8_t* target) {
    const Quad words = _mm_packs_epi32(Rounded(sum), Rounded(sum));
    const std::int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
    std::memcpy(target, &bytes, kColours);
  }

  static Run LoadRun(const std::uint8_t* values) {
    const Quad bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    const Pairs low = PairsOf(_mm_unpacklo_epi8(bytes, _mm_setzero_si128()));
    const Pairs high = PairsOf(_mm_unpackhi_epi8(bytes, _mm_setzero_si128()));
    return {{low.low, low.high, high.low, high.high}};
  }
  static void StoreRun(const Run& sums, std::uint8_t* target) {
    const Quad low = _mm_packs_epi32(Rounded(sums.quads[0]), Rounded(sums.quads[1]));
    const Quad high = _mm_packs_epi32(Rounded(sums.quads[2]), Rounded(sums.quads[3]));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target), _mm_packus_epi16(low, high));
  }

 private:
  /// The pairs of the first and of the last four of eight pixels.
  struct Pairs {
    Quad low;
    Quad high;
  };
  static Pairs PairsOf(Quad words) {
    const Quad times_128 = _mm_slli_epi16(words, 7);
    return {_mm_unpacklo_epi16(words, times_128), _mm_unpackhi_epi16(words, times_128)};
  }
  static Quad Rounded(Quad sum) { return _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(kHalf)), Taps::kFixedBits); }
};

}  // namespace mpc::data::vision::internal
