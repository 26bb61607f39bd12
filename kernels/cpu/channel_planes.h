// Few channels, channels-last, to planes and back, 16 pixels at a time: with one plane a channel every lane of a vector
// works, where 6 channels of a pixel would fill 6 of 16. For processors with AVX-512; callers ask `HasAvx512()`.
#pragma once

#include <immintrin.h>

#include <array>
#include <cstdint>

namespace mpc::cpu {

inline bool HasAvx512() { return __builtin_cpu_supports("avx512f") != 0; }

/// Pixels of a group: the lanes of a vector.
inline constexpr std::int64_t kLanes = 16;
/// Channels that the permutations are worth their price for.
inline constexpr int kMaxPlanes = 16;

/// The permutations between `channels` vectors of interleaved values, value (pixel, channel) at pixel * channels +
/// channel, and `channels` vectors of one channel each.
class ChannelPlanes {
 public:
  /// 1 <= channels <= kMaxPlanes.
  explicit ChannelPlanes(int channels) : channels_(channels) {
    for (int vector = 0; vector < channels; ++vector) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const int interleaved = vector * static_cast<int>(kLanes) + lane;
        pixel_[Slot(vector)][Slot(lane)] = interleaved / channels;
        from_plane_[Slot(vector)][Slot(interleaved % channels)] |= static_cast<std::uint16_t>(1u << lane);
        const int wanted = lane * channels + vector;
        place_[Slot(vector)][Slot(lane)] = wanted % static_cast<int>(kLanes);
        from_vector_[Slot(vector)][Slot(wanted / static_cast<int>(kLanes))] |= static_cast<std::uint16_t>(1u << lane);
      }
    }
  }

  int channels() const { return channels_; }

  /// Reads `count` <= 16 pixels of `interleaved` into planes[channel * pitch ...], whole vectors; what lies beyond the
  /// pixels becomes 0.
  [[gnu::target("avx512f")]] void Split(const float* interleaved, std::int64_t count, float* planes,
                                        std::int64_t pitch) const {
    __m512 in[kMaxPlanes];
    for (int v = 0; v < channels_; ++v) {
      in[v] = _mm512_maskz_loadu_ps(Rest(count * channels_ - v * kLanes), interleaved + v * kLanes);
    }
    const __mmask16 pixels = Rest(count);
    for (int c = 0; c < channels_; ++c) {
      const __m512i place = _mm512_loadu_si512(place_[Slot(c)].data());
      __m512 plane = _mm512_setzero_ps();
      for (int v = 0; v < channels_; ++v) {
        const __mmask16 mask = from_vector_[Slot(c)][Slot(v)];
        if (mask != 0) plane = _mm512_mask_permutexvar_ps(plane, mask, place, in[v]);
      }
      _mm512_storeu_ps(planes + c * pitch, _mm512_maskz_mov_ps(pixels, plane));
    }
  }

  /// Writes `count` <= 16 pixels of planes[channel * pitch ...] to `interleaved`, nothing beyond them.
  [[gnu::target("avx512f")]] void Merge(const float* planes, std::int64_t pitch, std::int64_t count,
                                        float* interleaved) const {
    __m512 in[kMaxPlanes];
    for (int c = 0; c < channels_; ++c) in[c] = _mm512_loadu_ps(planes + c * pitch);
    for (int v = 0; v < channels_; ++v) {
      const __m512i pixel = _mm512_loadu_si512(pixel_[Slot(v)].data());
      __m512 values = _mm512_setzero_ps();
      for (int c = 0; c < channels_; ++c) {
        values = _mm512_mask_permutexvar_ps(values, from_plane_[Slot(v)][Slot(c)], pixel, in[c]);
      }
      _mm512_mask_storeu_ps(interleaved + v * kLanes, Rest(count * channels_ - v * kLanes), values);
    }
  }

 private:
  static std::size_t Slot(int index) { return static_cast<std::size_t>(index); }
  /// The first `count` lanes.
  static std::uint16_t Rest(std::int64_t count) {
    return count >= kLanes ? std::uint16_t{0xffff} : static_cast<std::uint16_t>(count <= 0 ? 0 : (1u << count) - 1u);
  }

  template <typename T>
  using Table = std::array<std::array<T, kLanes>, kMaxPlanes>;
  int channels_;
  alignas(64) Table<std::int32_t> pixel_{}, place_{};
  Table<std::uint16_t> from_plane_{}, from_vector_{};
};

}  // namespace mpc::cpu
