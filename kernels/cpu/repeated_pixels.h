// Pixels of few channels are multiplied to results of few channels. Channels-last results fill vectors without empty
// lanes. Each of their lanes takes its pixel from a vector of x by one permutation.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "kernels/cpu/padded_image.h"

namespace mpc::cpu {

/// The most channels of results.
inline constexpr std::int64_t kMaxRepeated = 16;

/// How a vector of x becomes the vector that a vector of results is multiplied by.
enum class PixelSource {
  kOne,     ///< one pixel in every lane
  kVector,  ///< a permutation
};

/// The pixels of x for results with `channels` channels a pixel. Result i takes pixel i / channels of a row of x.
/// Pixels lie `step` floats apart, and a vector has kLanes floats.
template <std::int64_t kLanes>
class RepeatedPixels {
 public:
  RepeatedPixels(std::int64_t channels, std::int64_t step)
      : patterns_(channels / std::gcd(channels, kLanes)), cycle_(patterns_ * kLanes / channels * step) {
    for (std::int64_t i = 0; i < patterns_ * kLanes; ++i) {
      Pattern& pattern = pattern_[static_cast<std::size_t>(i / kLanes)];
      if (i % kLanes == 0) pattern.begin = i / channels * step;
      const std::int64_t place = i / channels * step - pattern.begin;
      pattern.place[static_cast<std::size_t>(i % kLanes)] = static_cast<std::int32_t>(place);
      reach_ = std::max(reach_, place + 1);
    }
  }

  /// Whether the pixels of a vector lie in one vector of x.
  bool fits() const { return reach_ <= kLanes; }
  PixelSource source() const { return reach_ == 1 ? PixelSource::kOne : PixelSource::kVector; }

  /// The number of patterns. A pattern says which lane of a vector of results has which pixel and channel.
  std::int64_t patterns() const { return patterns_; }

  /// Where the pixels of vector `vector` of a row of results begin in a row of x, in floats.
  std::int64_t BeginOf(std::int64_t vector) const {
    return vector / patterns_ * cycle_ + pattern_[static_cast<std::size_t>(vector % patterns_)].begin;
  }
  /// The permutation of that vector.
  const std::int32_t* PlaceOf(std::int64_t vector) const {
    return pattern_[static_cast<std::size_t>(vector % patterns_)].place.data();
  }

 private:
  struct Pattern {
    alignas(64) std::array<std::int32_t, kLanes> place;  ///< offset of each lane's value from `begin`
    std::int64_t begin;  ///< where the first vector with this pattern begins in a row of x
  };

  std::int64_t patterns_;
  std::int64_t cycle_;      ///< floats of a row of x from one vector of a pattern to the next
  std::int64_t reach_ = 0;  ///< floats from the first to the last that a vector takes
  std::array<Pattern, kMaxRepeated> pattern_{};
};

/// The image of x whose pixels RepeatedPixels takes. It is in planes where channels between the pixels would set them
/// too far apart.
template <std::int64_t kLanes>
PaddedImage ImageOfPixels(const NarrowConvolution& c) {
  PaddedImage image = PaddedImage::InputOf(c);
  image.planes = !RepeatedPixels<kLanes>(c.out_channels, c.in_channels).fits();
  return image;
}

}  // namespace mpc::cpu
