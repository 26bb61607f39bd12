// The part of a picture that RandomResizedCrop takes. Not part of the public API.
#pragma once

#include "absl/status/statusor.h"
#include "frontend/data/vision/crop.h"
#include "frontend/data/vision/image.h"

namespace mpc::data::vision::internal {

/// A part of a random area and ratio at a random place, a function of (seed, epoch, row), the extents and the options.
/// Errors (INVALID_ARGUMENT): options that RandomResizedCrop does not take.
absl::StatusOr<Box> RandomPart(const Extents& extents, const RandomResizedCropOptions& options,
                               const RowPosition& position);

}  // namespace mpc::data::vision::internal
