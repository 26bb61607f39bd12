#include "frontend/data/vision/random_part.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace mpc::data::vision::internal {
namespace {

/// The draws of one part take three or fewer, and those of a transform are 256.
constexpr std::int32_t kMostAttempts = 80;

bool IsRange(const std::array<float, 2>& range) {
  return range[0] > 0 && range[0] <= range[1] && std::isfinite(range[1]);
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

absl::Status CheckRanges(const PartRanges& ranges, const char* transform) {
  const auto refuse = [&](const char* name, const std::array<float, 2>& range) {
    return absl::InvalidArgumentError(absl::StrCat(transform, ": ", name, " is {least, largest}, both above 0; got {",
                                                   range[0], ", ", range[1], "}"));
  };
  if (!IsRange(ranges.scale)) return refuse("scale", ranges.scale);
  if (!IsRange(ranges.ratio)) return refuse("ratio", ranges.ratio);
  if (ranges.max_attempts < 1 || ranges.max_attempts > kMostAttempts) {
    return absl::InvalidArgumentError(
        absl::StrCat(transform, ": max_attempts must be from 1 to ", kMostAttempts, ", got ", ranges.max_attempts));
  }
  return absl::OkStatus();
}

std::optional<Box> DrawPart(const Extents& extents, const PartRanges& ranges, Draws& draws) {
  for (std::int32_t attempt = 0; attempt < ranges.max_attempts; ++attempt) {
    const double area = static_cast<double>(extents.pixels()) * draws.Between(ranges.scale[0], ranges.scale[1]);
    const double ratio = std::exp(draws.Between(std::log(ranges.ratio[0]), std::log(ranges.ratio[1])));
    const std::int64_t width = std::lround(std::sqrt(area * ratio));
    const std::int64_t height = std::lround(std::sqrt(area / ratio));
    if (width < 1 || height < 1 || width > extents.width || height > extents.height) continue;
    // One draw gives both: there are far fewer places than numbers.
    const std::int64_t columns = extents.width - width + 1;
    const std::int64_t place = draws.Below(columns * (extents.height - height + 1));
    return Box{place / columns, place % columns, height, width};
  }
  return std::nullopt;
}

absl::StatusOr<Box> RandomPart(const Extents& extents, const RandomResizedCropOptions& options,
                               const RowPosition& position) {
  const PartRanges ranges{options.scale, options.ratio, options.max_attempts};
  if (absl::Status status = CheckRanges(ranges, "RandomResizedCrop"); !status.ok()) return status;
  Draws draws(DrawStream::kResizedCrop, options.seed, position);
  const std::optional<Box> part = DrawPart(extents, ranges, draws);
  return part ? *part : LargestPart(extents, options.ratio);
}

}  // namespace mpc::data::vision::internal
