#include "frontend/data/vision/color.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "frontend/data/vision/color_changes.h"
#include "frontend/data/vision/random_draws.h"

namespace mpc::data::vision {
namespace {

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
  void (*apply)(internal::Pixels pixels, float value);
};

constexpr std::array kAdjustments = {
    Adjustment{.name = "brightness",
               .range = &RandomColorAdjustOptions::brightness,
               .least = 0,
               .largest = INFINITY,
               .unchanged = 1,
               .apply = internal::AdjustBrightness},
    Adjustment{.name = "contrast",
               .range = &RandomColorAdjustOptions::contrast,
               .least = 0,
               .largest = INFINITY,
               .unchanged = 1,
               .apply = internal::AdjustContrast},
    Adjustment{.name = "saturation",
               .range = &RandomColorAdjustOptions::saturation,
               .least = 0,
               .largest = INFINITY,
               .unchanged = 1,
               .apply = internal::AdjustSaturation},
    Adjustment{.name = "hue",
               .range = &RandomColorAdjustOptions::hue,
               .least = -0.5f,
               .largest = 0.5f,
               .unchanged = 0,
               .apply = internal::AdjustHue},
};

}  // namespace

absl::StatusOr<Tensor> RandomColorAdjust::operator()(const Tensor& image, const RowPosition& position) const {
  for (const Adjustment& adjustment : kAdjustments) {
    absl::Status status = CheckRange(adjustment.name, options_.*adjustment.range, adjustment.least, adjustment.largest);
    if (!status.ok()) return status;
  }
  if (absl::Status status = internal::CheckRgb(image, "RandomColorAdjust"); !status.ok()) return status;
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
  if (absl::Status status = internal::CheckRgb(image, "RandomGrayscale"); !status.ok()) return status;
  internal::Draws draws(internal::DrawStream::kGrayscale, seed_, position);
  const absl::StatusOr<bool> is_grey = internal::Happens(prob_, draws, "RandomGrayscale");
  if (!is_grey.ok()) return is_grey.status();
  if (!*is_grey) return image;
  const absl::Span<const std::uint8_t> given = image.data<std::uint8_t>();
  std::vector<std::uint8_t> pixels(given.size());
  for (std::size_t i = 0; i < given.size(); i += 3) std::fill_n(&pixels[i], 3, internal::GreyOf(&given[i]));
  return Tensor::From(pixels, image.shape());
}

}  // namespace mpc::data::vision
