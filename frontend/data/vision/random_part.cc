#include "frontend/data/vision/random_part.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "frontend/data/vision/random_draws.h"

namespace mpc::data::vision::internal {
namespace {

/// The draws of one part take three or fewer, and those of a transform are 256.
constexpr std::int32_t kMostAttempts = 80;

bool IsRange(const std::array<float, 2>& range) {
  return range[0] > 0 && range[0] <= range[1] && std::isfinite(range[1]);
}

absl::Status CheckOptions(const RandomResizedCropOptions& options) {
  const auto refuse = [](const char* name, const std::array<float, 2>& range) {
    return absl::InvalidArgumentError(absl::StrCat("RandomResizedCrop: ", name, " is {least, largest}, both above 0; ",
                                                   "got {", range[0], ", ", range[1], "}"));
  };
  if (!IsRange(options.scale)) return refuse("scale", options.scale);
  if (!IsRange(options.ratio)) return refuse("ratio", options.ratio);
  if (options.max_attempts < 1 || options.max_attempts > kMostAttempts) {
    return absl::InvalidArgumentError(absl::StrCat("RandomResizedCrop: max_attempts must be from 1 to ", kMostAttempts,
                                                   ", got ", options.max_attempts));
  }
  return absl::OkStatus();
}

/// The largest part in the middle whose ratio is allowed.
Box LargestPart(const Extents& extents, const std::array<float, 2>& ratio) {
  const auto height = static_cast<double>(extents.height);
  const auto width = static_cast<double>(extents.width);
  Box part = InTheMiddle(extents, extents.height, extents.width);
  if (width / height < ratio[0]) {
    part = InTheMiddle(extents, std::lround(width / ratio[0]), extents.width);
  } else if (width / height > ratio[1]) {
    part = InTheMiddle(extents, extents.height, std::lround(height * ratio[1]));
  }
  part.height = std::max(part.height, std::int64_t{1});
  part.width = std::max(part.width, std::int64_t{1});
  return part;
}

}  // namespace

absl::StatusOr<Box> RandomPart(const Extents& extents, const RandomResizedCropOptions& options,
                               const RowPosition& position) {
  if (absl::Status status = CheckOptions(options); !status.ok()) return status;
  Draws draws(DrawStream::kResizedCrop, options.seed, position);
  for (std::int32_t attempt = 0; attempt < options.max_attempts; ++attempt) {
    const double area = static_cast<double>(extents.pixels()) * draws.Between(options.scale[0], options.scale[1]);
    const double ratio = std::exp(draws.Between(std::log(options.ratio[0]), std::log(options.ratio[1])));
    const std::int64_t width = std::lround(std::sqrt(area * ratio));
    const std::int64_t height = std::lround(std::sqrt(area / ratio));
    if (width < 1 || height < 1 || width > extents.width || height > extents.height) continue;
    // One draw gives both: there are far fewer places than numbers.
    const std::int64_t columns = extents.width - width + 1;
    const std::int64_t place = draws.Below(columns * (extents.height - height + 1));
    return Box{place / columns, place % columns, height, width};
  }
  return LargestPart(extents, options.ratio);
}

}  // namespace mpc::data::vision::internal
