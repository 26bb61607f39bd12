#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/data/vision/border.h"
#include "frontend/graph/tensor_node.h"
#include "runtime/aligned_buffer.h"

namespace mpc::data::vision {
namespace internal {
namespace {

/// The place of the source that stands at `position`, which may lie outside; -1 for the fill value.
std::int64_t SourcePlace(std::int64_t position, std::int64_t extent, BorderType mode) {
  if (position >= 0 && position < extent) return position;
  if (mode == BorderType::kConstant) return -1;
  if (mode == BorderType::kEdge || extent == 1) return std::clamp(position, std::int64_t{0}, extent - 1);
  // Mirrored again and again, the picture has this period.
  const std::int64_t repeated = mode == BorderType::kSymmetric ? 1 : 0;
  const std::int64_t period = 2 * (extent - 1 + repeated);
  const std::int64_t place = (position % period + period) % period;
  return place < extent ? place : period - repeated - place;
}

std::vector<std::int64_t> SourcePlaces(std::int64_t before, std::int64_t extent, std::int64_t after, BorderType mode) {
  std::vector<std::int64_t> places;
  for (std::int64_t i = -before; i < extent + after; ++i) places.push_back(SourcePlace(i, extent, mode));
  return places;
}

}  // namespace

absl::StatusOr<Margins> MarginsOf(const std::vector<std::int32_t>& padding, const char* transform) {
  const std::size_t count = padding.size();
  const bool negative = std::ranges::any_of(padding, [](std::int32_t value) { return value < 0; });
  if (negative || (count != 1 && count != 2 && count != 4)) {
    return absl::InvalidArgumentError(absl::StrCat(
        transform, ": padding is one value, {left and right, top and bottom} or {left, top, right, bottom}, each at ",
        "least 0; got {", absl::StrJoin(padding, ", "), "}"));
  }
  return Margins{
      .left = padding[0], .top = padding[1 % count], .right = padding[2 % count], .bottom = padding[3 % count]};
}

absl::StatusOr<std::vector<std::byte>> FillPixel(const Tensor& image, const std::vector<std::uint8_t>& fill_value,
                                                 const char* transform) {
  const absl::StatusOr<Extents> extents = PixelExtentsOf(image, transform);
  if (!extents.ok()) return extents.status();
  const auto channels = static_cast<std::size_t>(extents->channels);
  if (fill_value.size() != 1 && fill_value.size() != channels) {
    return absl::InvalidArgumentError(absl::StrCat(transform, ": fill_value has ", fill_value.size(),
                                                   " values; accepted are 1 and the picture's channels, ", channels));
  }
  std::vector<std::byte> pixel(channels * ElementSize(image.dtype()));
  for (std::size_t c = 0; c < channels; ++c) {
    const std::uint8_t value = fill_value[c % fill_value.size()];
    const auto number = static_cast<float>(value);
    if (image.dtype() == DType::kU8) {
      pixel[c] = std::byte{value};
    } else {
      std::memcpy(&pixel[c * sizeof(float)], &number, sizeof(float));
    }
  }
  return pixel;
}

absl::StatusOr<Tensor> WithBorder(const Tensor& image, const Margins& margins,
                                  const std::vector<std::uint8_t>& fill_value, BorderType mode, const char* transform) {
  const absl::StatusOr<std::vector<std::byte>> fill = FillPixel(image, fill_value, transform);
  if (!fill.ok()) return fill.status();
  const std::vector<std::int64_t> rows = SourcePlaces(margins.top, image.dim(0), margins.bottom, mode);
  const std::vector<std::int64_t> columns = SourcePlaces(margins.left, image.dim(1), margins.right, mode);
  TensorSpec spec =
      WithExtents(image, static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns.size()));
  runtime::AlignedBuffer buffer(spec.bytes());
  const std::size_t pixel_bytes = fill->size();
  std::byte* target = buffer.data();
  for (const std::int64_t y : rows) {
    for (const std::int64_t x : columns) {
      const bool outside = y < 0 || x < 0;
      const std::size_t offset = outside ? 0 : static_cast<std::size_t>(y * image.dim(1) + x) * pixel_bytes;
      const void* source = outside ? static_cast<const void*>(fill->data()) : image.bytes().data() + offset;
      std::memcpy(target, source, pixel_bytes);
      target += pixel_bytes;
    }
  }
  return mpc::internal::MakeConcrete(std::move(spec), std::move(buffer));
}

}  // namespace internal

Pad::Pad(std::vector<std::int32_t> padding, std::vector<std::uint8_t> fill_value, BorderType padding_mode)
    : padding_(std::move(padding)), fill_value_(std::move(fill_value)), padding_mode_(padding_mode) {}

absl::StatusOr<Tensor> Pad::operator()(const Tensor& image) const {
  const absl::StatusOr<internal::Margins> margins = internal::MarginsOf(padding_, "Pad");
  if (!margins.ok()) return margins.status();
  return internal::WithBorder(image, *margins, fill_value_, padding_mode_, "Pad");
}

}  // namespace mpc::data::vision
