#include "frontend/data/vision/rotation.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/vision/affine.h"
#include "frontend/data/vision/border.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/random_draws.h"

namespace mpc::data::vision {
namespace {

using internal::AffineMap;
using internal::Extents;

/// The extents of the whole turned picture, whose centre is the middle.
Extents ExpandedExtents(const Extents& extents, const AffineMap& turn) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const double x : {0.0, static_cast<double>(extents.width)}) {
    for (const double y : {0.0, static_cast<double>(extents.height)}) {
      const double right = x - turn.center_x;
      const double down = y - turn.center_y;
      xs.push_back(turn.xx * right + turn.yx * down + turn.center_x);
      ys.push_back(turn.yy * down + turn.xy * right + turn.center_y);
    }
  }
  const auto span = [](const std::vector<double>& places) {
    const auto [least, largest] = std::minmax_element(places.begin(), places.end());
    return static_cast<std::int64_t>(std::ceil(*largest) - std::floor(*least));
  };
  return {.height = span(ys), .width = span(xs), .channels = extents.channels};
}

}  // namespace

RandomRotation::RandomRotation(std::vector<float> degrees, RandomRotationOptions options)
    : degrees_(std::move(degrees)), options_(std::move(options)) {}

absl::Status RandomRotation::CheckOptions() const {
  const bool one = degrees_.size() == 1 && degrees_[0] >= 0 && std::isfinite(degrees_[0]);
  const bool two =
      degrees_.size() == 2 && degrees_[0] <= degrees_[1] && std::isfinite(degrees_[0]) && std::isfinite(degrees_[1]);
  if (!one && !two) {
    return absl::InvalidArgumentError(
        absl::StrCat("RandomRotation: degrees is {least, largest}, or one value of at least 0; got {",
                     absl::StrJoin(degrees_, ", "), "}"));
  }
  if (!options_.center.empty() && (options_.center.size() != 2 || options_.expand)) {
    return absl::InvalidArgumentError(
        absl::StrCat("RandomRotation: center is {x, y}, or empty as with expand = true; got {",
                     absl::StrJoin(options_.center, ", "), "}"));
  }
  for (float coordinate : options_.center) {
    if (std::isfinite(coordinate)) continue;
    return absl::InvalidArgumentError(absl::StrCat("RandomRotation: center is {", absl::StrJoin(options_.center, ", "),
                                                   "}; accepted are finite numbers"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> RandomRotation::operator()(const Tensor& image, const RowPosition& position) const {
  if (absl::Status status = CheckOptions(); !status.ok()) return status;
  const absl::StatusOr<Extents> extents = internal::PixelExtentsOf(image, "RandomRotation");
  if (!extents.ok()) return extents.status();
  const bool black = std::ranges::all_of(options_.fill_value, [](int v) { return v == 0; });
  const absl::StatusOr<std::vector<std::byte>> fill =
      internal::FillPixel(image, black ? std::vector<std::uint8_t>{0} : options_.fill_value, "RandomRotation");
  if (!fill.ok()) return fill.status();

  internal::Draws draws(internal::DrawStream::kRotation, options_.seed, position);
  const double least = degrees_.size() == 1 ? -degrees_[0] : degrees_[0];
  const double degrees = draws.Between(least, degrees_.back());
  const std::vector<float>& center = options_.center;
  AffineMap turn =
      internal::RotationAbout(center.empty() ? static_cast<double>(extents->width) / 2 : center[0],
                              center.empty() ? static_cast<double>(extents->height) / 2 : center[1], degrees);
  const Extents result = options_.expand ? ExpandedExtents(*extents, turn) : *extents;
  if (options_.expand) {
    turn.target_x = static_cast<double>(result.width) / 2;
    turn.target_y = static_cast<double>(result.height) / 2;
  }
  const TensorSpec spec = internal::WithExtents(image, result.height, result.width);
  return internal::Mapped(image, turn, spec, *fill, options_.resample);
}

}  // namespace mpc::data::vision
