// Borders, for the transforms that pad. Not part of the public API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/pad.h"

namespace mpc::data::vision::internal {

struct Margins {
  std::int64_t left = 0;
  std::int64_t top = 0;
  std::int64_t right = 0;
  std::int64_t bottom = 0;
};

/// Margins from one, two or four values, as Pad has them.
absl::StatusOr<Margins> MarginsOf(const std::vector<std::int32_t>& padding, const char* transform);

/// The bytes of one pixel of `image` whose channels are `fill_value`, one value for all channels or one for each.
absl::StatusOr<std::vector<std::byte>> FillPixel(const Tensor& image, const std::vector<std::uint8_t>& fill_value,
                                                 const char* transform);

/// The picture, of u8 or f32, with margins around it.
absl::StatusOr<Tensor> WithBorder(const Tensor& image, const Margins& margins,
                                  const std::vector<std::uint8_t>& fill_value, BorderType mode, const char* transform);

}  // namespace mpc::data::vision::internal
