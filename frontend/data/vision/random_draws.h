// The random numbers of a transform at one row. Not part of the public API.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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
  kErasing = 0x76657200,
  kGrayscale = 0x76677200,
  kMixUp = 0x766d7500,
  kCutMix = 0x76636d00,
  kTrivialAugmentWide = 0x76746100,
  kRandAugment = 0x76726100,
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

/// True with probability `prob`. Errors (INVALID_ARGUMENT): a prob outside 0 .. 1.
inline absl::StatusOr<bool> Happens(float prob, Draws& draws, const char* transform) {
  if (!(prob >= 0 && prob <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(transform, ": prob must be from 0 to 1, got ", prob));
  }
  return draws.Between(0, 1) < static_cast<double>(prob);
}

}  // namespace mpc::data::vision::internal
