#include "frontend/data/vision/crop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/vision/border.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/random_draws.h"
#include "frontend/data/vision/resampling.h"

namespace mpc::data::vision {
namespace {

using internal::Box;
using internal::Extents;

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

Box InTheMiddle(const Extents& extents, std::int64_t height, std::int64_t width) {
  return {(extents.height - height) / 2, (extents.width - width) / 2, height, width};
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

Box RandomPart(const Extents& extents, const RandomResizedCropOptions& options, internal::Draws draws) {
  for (std::int32_t attempt = 0; attempt < options.max_attempts; ++attempt) {
    const double area = static_cast<double>(extents.pixels()) * draws.Between(options.scale[0], options.scale[1]);
    const double ratio = std::exp(draws.Between(std::log(options.ratio[0]), std::log(options.ratio[1])));
    const std::int64_t width = std::lround(std::sqrt(area * ratio));
    const std::int64_t height = std::lround(std::sqrt(area / ratio));
    if (width < 1 || height < 1 || width > extents.width || height > extents.height) continue;
    // One draw gives both: there are far fewer places than numbers.
    const std::int64_t columns = extents.width - width + 1;
    const std::int64_t place = draws.Below(columns * (extents.height - height + 1));
    return {place / columns, place % columns, height, width};
  }
  return LargestPart(extents, options.ratio);
}

}  // namespace

absl::StatusOr<Tensor> CenterCrop::operator()(const Tensor& image) const {
  const absl::StatusOr<Box> size = internal::SizeOf(size_, "CenterCrop");
  if (!size.ok()) return size.status();
  const absl::StatusOr<Extents> extents = internal::PixelExtentsOf(image, "CenterCrop");
  if (!extents.ok()) return extents.status();
  const std::int64_t rows = std::max(size->height - extents->height, std::int64_t{0});
  const std::int64_t columns = std::max(size->width - extents->width, std::int64_t{0});
  const internal::Margins margins{columns - columns / 2, rows - rows / 2, columns / 2, rows / 2};
  absl::StatusOr<Tensor> padded = image;
  if (rows > 0 || columns > 0) {
    padded = internal::WithBorder(image, margins, {0}, BorderType::kConstant, "CenterCrop");
    if (!padded.ok()) return padded;
  }
  return internal::CutOut(*padded, InTheMiddle({padded->dim(0), padded->dim(1)}, size->height, size->width));
}

RandomCrop::RandomCrop(std::vector<std::int32_t> size, RandomCropOptions options)
    : size_(std::move(size)), options_(std::move(options)) {}

absl::StatusOr<Tensor> RandomCrop::operator()(const Tensor& image, const RowPosition& position) const {
  const absl::StatusOr<Box> size = internal::SizeOf(size_, "RandomCrop");
  if (!size.ok()) return size.status();
  const absl::StatusOr<Extents> extents = internal::PixelExtentsOf(image, "RandomCrop");
  if (!extents.ok()) return extents.status();
  absl::StatusOr<internal::Margins> margins = internal::MarginsOf(options_.padding, "RandomCrop");
  if (!margins.ok()) return margins.status();
  if (options_.pad_if_needed) {
    const std::int64_t rows = size->height - (extents->height + margins->top + margins->bottom);
    const std::int64_t columns = size->width - (extents->width + margins->left + margins->right);
    margins->top += std::max(rows, std::int64_t{0});
    margins->bottom += std::max(rows, std::int64_t{0});
    margins->left += std::max(columns, std::int64_t{0});
    margins->right += std::max(columns, std::int64_t{0});
  }
  const bool black = std::ranges::all_of(options_.fill_value, [](int v) { return v == 0; });
  absl::StatusOr<Tensor> padded = internal::WithBorder(
      image, *margins, black ? std::vector<std::uint8_t>{0} : options_.fill_value, options_.padding_mode, "RandomCrop");
  if (!padded.ok()) return padded;
  const std::int64_t rows = padded->dim(0) - size->height;
  const std::int64_t columns = padded->dim(1) - size->width;
  if (rows < 0 || columns < 0) {
    return absl::InvalidArgumentError(absl::StrCat("RandomCrop: the picture, ", padded->dim(0), " x ", padded->dim(1),
                                                   " with its padding, is smaller than size ", size->height, " x ",
                                                   size->width, "; pad_if_needed = true pads it"));
  }
  internal::Draws draws(internal::DrawStream::kCrop, options_.seed, position);
  const std::int64_t top = draws.Below(rows + 1);
  const std::int64_t left = draws.Below(columns + 1);
  return internal::CutOut(*padded, {top, left, size->height, size->width});
}

RandomResizedCrop::RandomResizedCrop(std::vector<std::int32_t> size, RandomResizedCropOptions options)
    : size_(std::move(size)), options_(options) {}

absl::StatusOr<Tensor> RandomResizedCrop::operator()(const Tensor& image, const RowPosition& position) const {
  const absl::StatusOr<Box> size = internal::SizeOf(size_, "RandomResizedCrop");
  if (!size.ok()) return size.status();
  if (absl::Status status = CheckOptions(options_); !status.ok()) return status;
  absl::StatusOr<Extents> extents = internal::PixelExtentsOf(image, "RandomResizedCrop");
  if (!extents.ok()) return extents.status();
  const Box part = RandomPart(*extents, options_, {internal::DrawStream::kResizedCrop, options_.seed, position});
  extents->height = part.height;
  extents->width = part.width;
  return internal::Resample(internal::CutOut(image, part), *extents, *size, options_.interpolation, options_.antialias);
}

absl::StatusOr<Tensor> RandomCropDecodeResize::operator()(const Tensor& encoded, const RowPosition& position) const {
  const absl::StatusOr<Tensor> image = decode_(encoded);
  if (!image.ok()) return image.status();
  return crop_(*image, position);
}

}  // namespace mpc::data::vision
