#include "frontend/data/vision/color_changes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mpc::data::vision::internal {
namespace {

constexpr std::size_t kChannels = 3;
constexpr std::size_t kLevels = 256;

using Levels = std::array<std::uint8_t, kLevels>;
using Histogram = std::array<std::size_t, kLevels>;

std::uint8_t Rounded(float value) { return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f))); }

/// From `base`, factor 0, to the value, factor 1, and beyond.
std::uint8_t Blend(std::uint8_t value, float base, float factor) {
  return Rounded(base + (static_cast<float>(value) - base) * factor);
}

/// Where a colour stands on the circle, in sixths: red 0, green 2, blue 4. `chroma` is above 0.
float HueOf(const std::uint8_t* pixel, float largest, float chroma) {
  const float red = pixel[0], green = pixel[1], blue = pixel[2];
  if (largest == red) return (green - blue) / chroma;
  return largest == green ? 2 + (blue - red) / chroma : 4 + (red - green) / chroma;
}

Levels Unchanged() {
  Levels levels{};
  for (std::size_t i = 0; i < kLevels; ++i) levels[i] = static_cast<std::uint8_t>(i);
  return levels;
}

/// Each channel takes the levels that `levels_of` makes of its histogram.
template <typename Function>
void ChangeLevels(Pixels pixels, const Function& levels_of) {
  for (std::size_t c = 0; c < kChannels; ++c) {
    Histogram histogram{};
    for (std::size_t i = c; i < pixels.size(); i += kChannels) ++histogram[pixels[i]];
    const Levels levels = levels_of(histogram);
    for (std::size_t i = c; i < pixels.size(); i += kChannels) pixels[i] = levels[pixels[i]];
  }
}

/// The levels that a channel has are spread over all. Fractions are cut off, as Pillow does it in f64.
Levels Spread(const Histogram& histogram) {
  const auto is_taken = [](std::size_t count) { return count > 0; };
  const auto least = std::ranges::find_if(histogram, is_taken) - histogram.begin();
  const auto largest = histogram.rend() - std::find_if(histogram.rbegin(), histogram.rend(), is_taken) - 1;
  Levels levels = Unchanged();
  if (largest <= least) return levels;
  const double scale = 255.0 / static_cast<double>(largest - least);
  const double offset = -static_cast<double>(least) * scale;
  for (std::size_t i = 0; i < kLevels; ++i) {
    levels[i] = static_cast<std::uint8_t>(std::clamp(static_cast<double>(i) * scale + offset, 0.0, 255.0));
  }
  return levels;
}

/// Levels by the number of pixels that are darker, in Pillow's whole numbers.
Levels Equalized(const Histogram& histogram) {
  std::size_t pixels = 0, brightest = 0;
  for (const std::size_t count : histogram) {
    pixels += count;
    if (count > 0) brightest = count;
  }
  const std::size_t step = (pixels - brightest) / 255;
  Levels levels = Unchanged();
  if (step == 0) return levels;
  std::size_t darker = step / 2;
  for (std::size_t i = 0; i < kLevels; ++i) {
    levels[i] = static_cast<std::uint8_t>(std::min(darker / step, kLevels - 1));
    darker += histogram[i];
  }
  return levels;
}

/// Pillow's filter SMOOTH at a value that has eight neighbours in its channel: weight 5, and 1 of each neighbour.
std::uint8_t Smoothed(const std::uint8_t* value, std::size_t row) {
  const std::uint8_t* const above = value - row;
  const std::uint8_t* const below = value + row;
  int sum = 4 * *value;
  for (const std::uint8_t* const middle : {above, value, below})
    sum += *(middle - kChannels) + *middle + middle[kChannels];
  return static_cast<std::uint8_t>((2 * sum + 13) / 26);
}

}  // namespace

absl::Status CheckRgb(const Tensor& image, const char* transform) {
  const absl::StatusOr<Extents> extents = ExtentsOf(image, transform);
  if (!extents.ok()) return extents.status();
  if (extents->channels == 3 && image.dtype() == DType::kU8) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(transform, " takes RGB pictures of u8, got ", image.spec().ToString()));
}

/// Grey of ITU-R 601, rounded as Pillow rounds it.
std::uint8_t GreyOf(const std::uint8_t* pixel) {
  return static_cast<std::uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
}

void AdjustBrightness(Pixels pixels, float factor) {
  for (std::uint8_t& value : pixels) value = Blend(value, 0, factor);
}

void AdjustContrast(Pixels pixels, float factor) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < pixels.size(); i += 3) sum += GreyOf(&pixels[i]);
  const std::uint64_t count = pixels.size() / 3;
  const std::uint64_t mean = (sum + count / 2) / count;
  for (std::uint8_t& value : pixels) value = Blend(value, static_cast<float>(mean), factor);
}

void AdjustSaturation(Pixels pixels, float factor) {
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    const auto grey = static_cast<float>(GreyOf(&pixels[i]));
    for (std::size_t c = 0; c < 3; ++c) pixels[i + c] = Blend(pixels[i + c], grey, factor);
  }
}

void AdjustHue(Pixels pixels, float turn) {
  for (std::size_t i = 0; i < pixels.size(); i += 3) {
    std::uint8_t* pixel = &pixels[i];
    const float largest = std::max({pixel[0], pixel[1], pixel[2]});
    const float chroma = largest - static_cast<float>(std::min({pixel[0], pixel[1], pixel[2]}));
    if (chroma == 0) continue;
    const float hue = HueOf(pixel, largest, chroma) + 6 * turn;
    // Channel n of {red, green, blue} falls off from its own place on the circle (Smith 1978, in closed form).
    for (int n = 0; n < 3; ++n) {
      const float place = std::fmod(static_cast<float>(5 - 2 * n) + hue + 12, 6.0f);
      pixel[n] = Rounded(largest - chroma * std::clamp(std::min(place, 4 - place), 0.0f, 1.0f));
    }
  }
}

void AdjustSharpness(Pixels pixels, std::int64_t width, float factor) {
  const std::size_t row = static_cast<std::size_t>(width) * kChannels;
  const std::size_t rows = pixels.size() / row;
  const std::vector<std::uint8_t> given(pixels.begin(), pixels.end());
  for (std::size_t y = 1; y + 1 < rows; ++y) {
    for (std::size_t i = y * row + kChannels; i + kChannels < (y + 1) * row; ++i) {
      pixels[i] = Blend(given[i], Smoothed(&given[i], row), factor);
    }
  }
}

void Posterize(Pixels pixels, int bits) {
  const auto mask = static_cast<std::uint8_t>(0xff << (8 - bits));
  for (std::uint8_t& value : pixels) value &= mask;
}

void Solarize(Pixels pixels, double threshold) {
  for (std::uint8_t& value : pixels) {
    if (value >= threshold) value = static_cast<std::uint8_t>(255 - value);
  }
}

void AutoContrast(Pixels pixels) { ChangeLevels(pixels, Spread); }

void Equalize(Pixels pixels) { ChangeLevels(pixels, Equalized); }

}  // namespace mpc::data::vision::internal
