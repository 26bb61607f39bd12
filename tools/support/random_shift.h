// Augmentation: a few hundred training images go further if they do not always stand at the same place.
#pragma once

#include <cstdint>

#include "frontend/data/dataset.h"

namespace mpc::tools {

/// Moves each image (f32 [1, height, width]) by up to `pixels` in both directions, uniformly. What comes in from
/// outside is the image's lowest value, its background. The draws are a function of the seed and of the image's number,
/// which is epoch * `rows` + row. Equal seeds give equal epochs, wherever a run begins.
data::PositionMapFunction RandomShift(std::int64_t pixels, std::uint64_t seed, std::int64_t rows);

}  // namespace mpc::tools
