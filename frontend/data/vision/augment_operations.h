// The operations that TrivialAugmentWide and RandAugment draw from. Not part of the public API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "frontend/data/vision/resize.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision::internal {

/// What pixels of a picture that is turned, sheared or moved are made of.
struct Resampling {
  std::vector<std::byte> fill;  ///< the bytes of a pixel from outside
  Inter interpolation = Inter::kNearest;
};

/// What magnitudes are measured in.
enum class MagnitudeUnit { kOne, kWidth, kHeight };

struct AugmentOperation {
  const char* name;  ///< torchvision's
  double first = 0;  ///< magnitude of the first bin
  double last = 0;   ///< magnitude of the last bin
  MagnitudeUnit unit = MagnitudeUnit::kOne;
  bool is_signed = false;  ///< whether half of the magnitudes are negative
  /// A picture of u8 [height, width, 3] at a magnitude.
  Tensor (*apply)(const Tensor& image, double magnitude, const Resampling& resampling);
};

/// The operations of each transform, in torchvision's order, with the ranges of its magnitudes.
absl::Span<const AugmentOperation> TrivialAugmentWideOperations();
absl::Span<const AugmentOperation> RandAugmentOperations();

/// The magnitude of `bin`, from 0 to bins - 1: bins have equal distances.
double MagnitudeOf(const AugmentOperation& operation, std::int64_t bin, std::int64_t bins, const Tensor& image);

}  // namespace mpc::data::vision::internal
