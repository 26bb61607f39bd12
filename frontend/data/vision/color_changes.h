// Changes of colours, in place. Not part of the public API.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "frontend/data/vision/image.h"
#include "frontend/graph/tensor.h"

namespace mpc::data::vision::internal {

/// An RGB picture, row after row: red, green and blue of each pixel.
using Pixels = absl::Span<std::uint8_t>;

/// Errors (INVALID_ARGUMENT, beginning with `transform`): another tensor than u8 [height, width, 3].
absl::Status CheckRgb(const Tensor& image, const char* transform);

/// Grey of ITU-R 601 of a red, a green and a blue, rounded as Pillow rounds it.
std::uint8_t GreyOf(const std::uint8_t* pixel);

/// Pillow's ImageEnhance: from a base, factor 0, to the picture, factor 1, and beyond. Results are rounded, where
/// Pillow cuts fractions off. The bases are black, the mean grey, the picture in grey, and the smoothed picture.
void AdjustBrightness(Pixels pixels, float factor);
void AdjustContrast(Pixels pixels, float factor);
void AdjustSaturation(Pixels pixels, float factor);
/// Pixels at the edges stay as they are.
void AdjustSharpness(Pixels pixels, std::int64_t width, float factor);

/// The hue, `turn` of the colour circle further on.
void AdjustHue(Pixels pixels, float turn);

/// Pillow's ImageOps, bit by bit. `bits` of a level are kept, from 1 to 8.
void Posterize(Pixels pixels, int bits);
/// Levels of `threshold` and above are inverted.
void Solarize(Pixels pixels, double threshold);
void AutoContrast(Pixels pixels);
void Equalize(Pixels pixels);

}  // namespace mpc::data::vision::internal
