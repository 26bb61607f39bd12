#include "frontend/data/vision/augment_operations.h"

#include <array>
#include <cmath>

#include "absl/types/span.h"
#include "frontend/data/vision/affine.h"
#include "frontend/data/vision/color_changes.h"

namespace mpc::data::vision::internal {
namespace {

Tensor Identity(const Tensor& image, double, const Resampling&) { return image; }

Tensor Moved(const Tensor& image, const AffineMap& map, const Resampling& resampling) {
  const bool is_nearest = resampling.interpolation == Inter::kNearest;
  return Mapped(image, is_nearest ? RoundedAsPillow(map) : map, image.spec(), resampling.fill,
                resampling.interpolation);
}

// Shears keep the upper left corner, as torchvision's of Pillow's pictures.
Tensor ShearX(const Tensor& image, double magnitude, const Resampling& resampling) {
  return Moved(image, {.xy = magnitude}, resampling);
}

Tensor ShearY(const Tensor& image, double magnitude, const Resampling& resampling) {
  return Moved(image, {.yx = magnitude}, resampling);
}

Tensor TranslateX(const Tensor& image, double magnitude, const Resampling& resampling) {
  return Moved(image, {.target_x = std::trunc(magnitude)}, resampling);
}

Tensor TranslateY(const Tensor& image, double magnitude, const Resampling& resampling) {
  return Moved(image, {.target_y = std::trunc(magnitude)}, resampling);
}

Tensor Rotate(const Tensor& image, double magnitude, const Resampling& resampling) {
  const double center_x = static_cast<double>(image.dim(1)) / 2, center_y = static_cast<double>(image.dim(0)) / 2;
  return Moved(image, RotationAbout(center_x, center_y, magnitude), resampling);
}

/// The picture with pixels that `change` has changed.
template <typename Function>
Tensor Recolored(const Tensor& image, const Function& change) {
  const absl::Span<const std::uint8_t> given = image.data<std::uint8_t>();
  std::vector<std::uint8_t> pixels(given.begin(), given.end());
  change(absl::MakeSpan(pixels));
  return Tensor::From(pixels, image.shape());
}

/// Magnitude 0 leaves the picture as it is.
template <void (*Change)(Pixels pixels, float factor)>
Tensor Enhanced(const Tensor& image, double magnitude, const Resampling&) {
  return Recolored(image, [&](Pixels pixels) { Change(pixels, static_cast<float>(1 + magnitude)); });
}

Tensor Sharpness(const Tensor& image, double magnitude, const Resampling&) {
  return Recolored(image,
                   [&](Pixels pixels) { AdjustSharpness(pixels, image.dim(1), static_cast<float>(1 + magnitude)); });
}

Tensor Posterized(const Tensor& image, double magnitude, const Resampling&) {
  const int bits = static_cast<int>(std::nearbyint(magnitude));  // halves to even, as torch rounds
  return Recolored(image, [&](Pixels pixels) { Posterize(pixels, bits); });
}

Tensor Solarized(const Tensor& image, double magnitude, const Resampling&) {
  return Recolored(image, [&](Pixels pixels) { Solarize(pixels, magnitude); });
}

template <void (*Change)(Pixels pixels)>
Tensor WithLevels(const Tensor& image, double, const Resampling&) {
  return Recolored(image, Change);
}

/// Where the spaces differ: the magnitudes of the last bin.
struct LastMagnitudes {
  double shear;
  double translation;
  MagnitudeUnit across;
  MagnitudeUnit down;
  double degrees;
  double enhancement;
  double bits;
};

constexpr auto OperationsTo(const LastMagnitudes& last) {
  using Operation = AugmentOperation;
  return std::array{
      Operation{.name = "Identity", .apply = Identity},
      Operation{.name = "ShearX", .last = last.shear, .is_signed = true, .apply = ShearX},
      Operation{.name = "ShearY", .last = last.shear, .is_signed = true, .apply = ShearY},
      Operation{
          .name = "TranslateX", .last = last.translation, .unit = last.across, .is_signed = true, .apply = TranslateX},
      Operation{
          .name = "TranslateY", .last = last.translation, .unit = last.down, .is_signed = true, .apply = TranslateY},
      Operation{.name = "Rotate", .last = last.degrees, .is_signed = true, .apply = Rotate},
      Operation{.name = "Brightness", .last = last.enhancement, .is_signed = true, .apply = Enhanced<AdjustBrightness>},
      Operation{.name = "Color", .last = last.enhancement, .is_signed = true, .apply = Enhanced<AdjustSaturation>},
      Operation{.name = "Contrast", .last = last.enhancement, .is_signed = true, .apply = Enhanced<AdjustContrast>},
      Operation{.name = "Sharpness", .last = last.enhancement, .is_signed = true, .apply = Sharpness},
      Operation{.name = "Posterize", .first = 8, .last = last.bits, .apply = Posterized},
      Operation{.name = "Solarize", .first = 255, .last = 0, .apply = Solarized},
      Operation{.name = "AutoContrast", .apply = WithLevels<AutoContrast>},
      Operation{.name = "Equalize", .apply = WithLevels<Equalize>},
  };
}

// The spaces of torchvision 0.29 for Pillow's pictures.
constexpr auto kTrivialAugmentWide = OperationsTo({.shear = 0.99,
                                                   .translation = 32,
                                                   .across = MagnitudeUnit::kOne,
                                                   .down = MagnitudeUnit::kOne,
                                                   .degrees = 135,
                                                   .enhancement = 0.99,
                                                   .bits = 2});
constexpr auto kRandAugment = OperationsTo({.shear = 0.3,
                                            .translation = 150.0 / 331,
                                            .across = MagnitudeUnit::kWidth,
                                            .down = MagnitudeUnit::kHeight,
                                            .degrees = 30,
                                            .enhancement = 0.9,
                                            .bits = 4});

double SizeOf(MagnitudeUnit unit, const Tensor& image) {
  if (unit == MagnitudeUnit::kOne) return 1;
  return static_cast<double>(image.dim(unit == MagnitudeUnit::kWidth ? 1 : 0));
}

}  // namespace

absl::Span<const AugmentOperation> TrivialAugmentWideOperations() { return kTrivialAugmentWide; }

absl::Span<const AugmentOperation> RandAugmentOperations() { return kRandAugment; }

double MagnitudeOf(const AugmentOperation& operation, std::int64_t bin, std::int64_t bins, const Tensor& image) {
  const double size = SizeOf(operation.unit, image);
  const double first = operation.first * size, last = operation.last * size;
  return first + (last - first) * static_cast<double>(bin) / static_cast<double>(bins - 1);
}

}  // namespace mpc::data::vision::internal
