// Pictures that are turned, sheared and moved. Not part of the public API.
#pragma once

#include <cstddef>
#include <vector>

#include "frontend/data/vision/resize.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision::internal {

/// From a place of the result to the one of the source that is seen there. Places are Pillow's: pixels have their
/// centres at half positions.
struct AffineMap {
  double xx = 1;  ///< part of the result's x in the source's x
  double xy = 0;  ///< part of the result's y in the source's x
  double yx = 0;
  double yy = 1;
  double center_x = 0;  ///< in the source
  double center_y = 0;
  double target_x = 0;  ///< where the centre stands in the result
  double target_y = 0;

  double SourceX(double x, double y) const { return xx * (x - target_x) + xy * (y - target_y) + center_x; }
  double SourceY(double x, double y) const { return yx * (x - target_x) + yy * (y - target_y) + center_y; }
};

/// A turn about a centre that stays, counter-clockwise.
AffineMap RotationAbout(double center_x, double center_y, double degrees);

/// The map that Pillow takes for the nearest pixel: every coefficient is a multiple of 2^-16. Places are exact sums of
/// them then, and have Pillow's bits within 32768 pixels of the corner.
AffineMap RoundedAsPillow(const AffineMap& map);

/// A picture of u8 or f32 through `map`, in the extents of `spec`. Pixels from outside are `fill`, the bytes of a
/// pixel.
Tensor Mapped(const Tensor& image, const AffineMap& map, const TensorSpec& spec, const std::vector<std::byte>& fill,
              Inter interpolation);

}  // namespace mpc::data::vision::internal
