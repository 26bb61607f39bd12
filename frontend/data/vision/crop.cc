#include "frontend/data/vision/crop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/vision/border.h"
#include "frontend/data/vision/codecs.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/random_draws.h"
#include "frontend/data/vision/random_part.h"
#include "frontend/data/vision/resampling.h"

namespace mpc::data::vision {
namespace {

using internal::Box;
using internal::Extents;

Tensor Resized(const Tensor& part, const Box& size, const RandomResizedCropOptions& options) {
  Extents extents{.height = part.dim(0), .width = part.dim(1)};
  if (part.rank() == 3) extents.channels = part.dim(2);
  return internal::Resample(part, extents, size, options.interpolation, options.antialias);
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
  return internal::CutOut(*padded, internal::InTheMiddle({padded->dim(0), padded->dim(1)}, size->height, size->width));
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
  absl::StatusOr<Extents> extents = internal::PixelExtentsOf(image, "RandomResizedCrop");
  if (!extents.ok()) return extents.status();
  const absl::StatusOr<Box> part = internal::RandomPart(*extents, options_, position);
  if (!part.ok()) return part.status();
  return Resized(internal::CutOut(image, *part), *size, options_);
}

RandomCropDecodeResize::RandomCropDecodeResize(std::vector<std::int32_t> size, RandomResizedCropOptions options,
                                               DecodeOptions decode_options)
    : size_(std::move(size)), options_(options), decode_options_(decode_options) {}

absl::StatusOr<Tensor> RandomCropDecodeResize::operator()(const Tensor& encoded, const RowPosition& position) const {
  const absl::StatusOr<Box> size = internal::SizeOf(size_, "RandomCropDecodeResize");
  if (!size.ok()) return size.status();
  const absl::StatusOr<Tensor> part = internal::DecodePart(encoded, decode_options_, [&](const Extents& extents) {
    return internal::RandomPart(extents, options_, position);
  });
  if (!part.ok()) return part.status();
  return Resized(*part, *size, options_);
}

}  // namespace mpc::data::vision
