#include "frontend/data/vision/color.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/random_draws.h"

namespace mpc::data::vision {
namespace {

using Pixels = absl::Span<std::uint8_t>;

std::uint8_t Rounded(float value) { return static_cast<std::uint8_t>(std::lround(std::clamp(value, 0.0f, 255.0f))); }

/// Grey of ITU-R 601, rounded as Pillow rounds it.
std::uint8_t GreyOf(const std::uint8_t* pixel) {
  return static_cast<std::uint8_t>((pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
}

/// From `base`, factor 0, to the value, factor 1, and beyond.
std::uint8_t Blend(std::uint8_t value, float base, float factor) {
  return Rounded(base + (static_cast<float>(value) - base) * factor);
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

/// Where a colour stands on the circle, in sixths: red 0, green 2, blue 4. `chroma` is above 0.
float HueOf(const std::uint8_t* pixel, float largest, float chroma) {
  const float red = pixel[0], green = pixel[1], blue = pixel[2];
  if (largest == red) return (green - blue) / chroma;
  return largest == green ? 2 + (blue - red) / chroma : 4 + (red - green) / chroma;
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

absl::Status CheckRange(const char* name, const std::array<float, 2>& range, float least, float largest) {
  const bool finite = std::isfinite(range[0]) && std::isfinite(range[1]);
  if (finite && range[0] >= least && range[0] <= range[1] && range[1] <= largest) return absl::OkStatus();
  const std::string bound = std::isfinite(largest) ? absl::StrCat(" and at most ", largest)
                            : finite               ? ""
                                                   : " and finite";
  return absl::InvalidArgumentError(absl::StrCat("RandomColorAdjust: ", name, " is {least, largest}, at least ", least,
                                                 bound, "; got {", range[0], ", ", range[1], "}"));
}

struct Adjustment {
  const char* name;
  std::array<float, 2> RandomColorAdjustOptions::*range;
  float least;
  float largest;
  float unchanged;
  void (*apply)(Pixels pixels, float value);
};

constexpr std::array kAdjustments = {
    Adjustment{.name = "brightness",
               .range = &RandomColorAdjustOptions::brightness,
               .least = 0,
               .largest = INFINITY,
               .unchanged = 1,
               .apply = AdjustBrightness},
    Adjustment{.name = "contrast",
               .range = &RandomColorAdjustOptions::contrast,
               .least = 0,
               .largest = INFINITY,
               .unchanged = 1,
               .apply = AdjustContrast},
    Adjustment{.name = "saturation",
               .range = &RandomColorAdjustOptions::saturation,
               .least = 0,
               .largest = INFINITY,
               .unchanged = 1,
               .apply = AdjustSaturation},
    Adjustment{.name = "hue",
               .range = &RandomColorAdjustOptions::hue,
               .least = -0.5f,
               .largest = 0.5f,
               .unchanged = 0,
               .apply = AdjustHue},
};

absl::Status CheckColoured(const Tensor& image, const char* transform) {
  const absl::StatusOr<internal::Extents> extents = internal::ExtentsOf(image, transform);
  if (!extents.ok()) return extents.status();
  if (extents->channels == 3 && image.dtype() == DType::kU8) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(transform, " takes RGB pictures of u8, got ", image.spec().ToString()));
}

}  // namespace

absl::StatusOr<Tensor> RandomColorAdjust::operator()(const Tensor& image, const RowPosition& position) const {
  for (const Adjustment& adjustment : kAdjustments) {
    absl::Status status = CheckRange(adjustment.name, options_.*adjustment.range, adjustment.least, adjustment.largest);
    if (!status.ok()) return status;
  }
  if (absl::Status status = CheckColoured(image, "RandomColorAdjust"); !status.ok()) return status;
  internal::Draws draws(internal::DrawStream::kColor, options_.seed, position);
  std::array<std::size_t, kAdjustments.size()> order{};
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t last = order.size() - 1; last > 0; --last) {
    std::swap(order[last], order[static_cast<std::size_t>(draws.Below(static_cast<std::int64_t>(last) + 1))]);
  }
  const absl::Span<const std::uint8_t> given = image.data<std::uint8_t>();
  std::vector<std::uint8_t> pixels(given.begin(), given.end());
  for (const std::size_t index : order) {
    const Adjustment& adjustment = kAdjustments[index];
    const std::array<float, 2>& range = options_.*adjustment.range;
    const auto value = static_cast<float>(draws.Between(range[0], range[1]));
    if (value != adjustment.unchanged) adjustment.apply(absl::MakeSpan(pixels), value);
  }
  return Tensor::From(pixels, image.shape());
}

absl::StatusOr<Tensor> RandomGrayscale::operator()(const Tensor& image, const RowPosition& position) const {
  if (absl::Status status = CheckColoured(image, "RandomGrayscale"); !status.ok()) return status;
  internal::Draws draws(internal::DrawStream::kGrayscale, seed_, position);
  const absl::StatusOr<bool> is_grey = internal::Happens(prob_, draws, "RandomGrayscale");
  if (!is_grey.ok()) return is_grey.status();
  if (!*is_grey) return image;
  const absl::Span<const std::uint8_t> given = image.data<std::uint8_t>();
  std::vector<std::uint8_t> pixels(given.size());
  for (std::size_t i = 0; i < given.size(); i += 3) std::fill_n(&pixels[i], 3, GreyOf(&given[i]));
  return Tensor::From(pixels, image.shape());
}

}  // namespace mpc::data::vision
