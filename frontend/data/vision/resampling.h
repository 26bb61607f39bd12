// Pictures of another size. Not part of the public API.
#pragma once

#include "frontend/data/vision/image.h"
#include "frontend/data/vision/resize.h"

namespace mpc::data::vision::internal {

/// A picture of u8 or f32, resampled, the rows first. Pixels of u8 are rounded to nearest. With `antialias` they are
/// rounded between the axes too, and all sums are Pillow's whole numbers, so that the bits are.
Tensor Resample(const Tensor& image, const Extents& extents, const Box& size, Inter interpolation, bool antialias);

}  // namespace mpc::data::vision::internal
