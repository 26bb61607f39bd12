// The random numbers of a transform at one row. Not part of the public API.
#pragma once

#include <cstdint>

#include "frontend/data/dataset.h"
#include "frontend/data/uniform_draw.h"

namespace mpc::data::vision::internal {

/// Each transform has a stream, so that transforms with one seed draw different numbers. The low byte counts the draws.
enum class DrawStream : std::uint32_t {
  kCrop = 0x76637200,
  kResizedCrop = 0x76727300,
  kHorizontalFlip = 0x76686600,
  kVerticalFlip = 0x76766600,
  kColor = 0x76636f00,
  kRotation = 0x76726f00,
};

/// At most 256 draws. Each is a function of (seed, epoch, row), the stream and the number of draws before it.
class Draws {
 public:
  Draws(DrawStream stream, std::uint64_t seed, const RowPosition& position)
      : stream_(static_cast<std::uint32_t>(stream)), seed_(seed), position_(position) {}

  /// Uniform in 0 .. limit - 1.
  std::int64_t Below(std::int64_t limit) {
    return static_cast<std::int64_t>(data::internal::UniformBelow(static_cast<std::uint64_t>(limit), seed_,
                                                                  position_.epoch, stream_++, position_.row));
  }
  /// Uniform in [low, high), with 53 bits.
  double Between(double low, double high) {
    return low + (high - low) * (static_cast<double>(Below(std::int64_t{1} << 53)) * 0x1p-53);
  }

 private:
  std::uint32_t stream_;
  std::uint64_t seed_;
  RowPosition position_;
};

}  // namespace mpc::data::vision::internal
