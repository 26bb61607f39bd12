// Random parts of pictures, as RandomResizedCrop and RandomErasing take. Not part of the public API.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/data/vision/crop.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/random_draws.h"

namespace mpc::data::vision::internal {

/// What a random part may be.
struct PartRanges {
  std::array<float, 2> scale;  ///< least and largest part of the picture's area
  std::array<float, 2> ratio;  ///< least and largest width / height
  std::int32_t max_attempts;
};

/// Errors (INVALID_ARGUMENT, beginning with `transform`): ranges that are not positive and in order, max_attempts
/// outside 1 .. 80.
absl::Status CheckRanges(const PartRanges& ranges, const char* transform);

/// A part of a random area (uniform) and ratio (uniform in its logarithm) at a random place, or none where no attempt
/// fits the picture. It takes 240 draws at most.
std::optional<Box> DrawPart(const Extents& extents, const PartRanges& ranges, Draws& draws);

/// A part of a random area and ratio at a random place, a function of (seed, epoch, row), the extents and the options.
/// Errors (INVALID_ARGUMENT): options that RandomResizedCrop does not take.
absl::StatusOr<Box> RandomPart(const Extents& extents, const RandomResizedCropOptions& options,
                               const RowPosition& position);

}  // namespace mpc::data::vision::internal
