// Values of one row rearranged into another, 16 at a time, by permutations that are worked out once. For processors
// with AVX-512; callers ask `HasAvx512()`.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/cpu/lane_vectors.h"

namespace mpc::cpu {

/// Floats of a vector.
inline constexpr std::int64_t kLanes = 16;

/// Floats of a row that fits the stack.
inline constexpr std::int64_t kMaxRow = 2048;

/// The first `count` lanes; all of them from kLanes on.
inline __mmask16 FirstLanes(std::int64_t count) {
  return count >= kLanes ? __mmask16{0xffff} : static_cast<__mmask16>((1u << count) - 1u);
}

/// Computes target[i] = source[from[i]], where neighbours in the target come from near each other in the source.
class RowPermutation {
 public:
  /// `source_length` bounds what is read.
  RowPermutation(const std::vector<std::int64_t>& from, std::int64_t source_length) {
    for (std::size_t begin = 0; begin < from.size(); begin += kLanes) {
      const std::size_t end = std::min(from.size(), begin + static_cast<std::size_t>(kLanes));
      Step step{};
      step.base = source_length;
      std::int64_t last = -1;
      for (std::size_t i = begin; i < end; ++i) {
        step.base = std::min(step.base, from[i]);
        last = std::max(last, from[i]);
      }
      step.sources = static_cast<int>((last - step.base) / kLanes + 1);
      fits_ = fits_ && step.sources <= kMaxSources;
      if (!fits_) return;
      for (std::size_t i = begin; i < end; ++i) {
        const std::int64_t place = from[i] - step.base;
        step.lane[i - begin] = static_cast<std::int32_t>(place % (2 * kLanes));
        step.mask[static_cast<std::size_t>(place / kLanes)] |= static_cast<std::uint16_t>(1u << (i - begin));
      }
      for (int k = 0; k < step.sources; ++k) {
        const std::int64_t rest = source_length - step.base - k * kLanes;
        step.readable[static_cast<std::size_t>(k)] =
            static_cast<std::uint16_t>(rest >= kLanes ? 0xffff : (1u << rest) - 1u);
      }
      steps_.push_back(step);
    }
  }

  /// Whether the values that a vector takes lie close enough to each other.
  bool fits() const { return fits_; }

  /// Target values [16 * vector, 16 * vector + 16) as bits.
  [[gnu::target("avx512f")]] __m512i Take(const std::int32_t* source, std::size_t vector) const {
    const Step& step = steps_[vector];
    const std::int32_t* from = source + step.base;
    const __m512i lane = _mm512_load_si512(step.lane.data());
    // Where the second vector of the source lies behind its end, none of its lanes is readable.
    const __m512i first = _mm512_maskz_loadu_epi32(step.readable[0], from);
    const __m512i second = _mm512_maskz_loadu_epi32(step.readable[1], from + kLanes);
    __m512i taken = _mm512_permutex2var_epi32(first, lane, second);
    for (int k = 2; k < step.sources; ++k) {
      const auto part = static_cast<std::size_t>(k);
      const __m512i values = _mm512_maskz_loadu_epi32(step.readable[part], from + k * kLanes);
      taken = _mm512_mask_permutexvar_epi32(taken, step.mask[part], lane, values);
    }
    return taken;
  }

 private:
  static constexpr int kMaxSources = 6;
  struct Step {
    alignas(64) std::array<std::int32_t, kLanes> lane;  ///< lane in the first two vectors, or in a later one
    std::array<std::uint16_t, kMaxSources> mask, readable;
    std::int64_t base;
    int sources;
  };

  std::vector<Step> steps_;
  bool fits_ = true;
};

}  // namespace mpc::cpu
