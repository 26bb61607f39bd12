#include "frontend/data/vision/erase.h"

#include <cmath>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "frontend/data/vision/image.h"
#include "frontend/data/vision/random_draws.h"
#include "frontend/data/vision/random_part.h"

namespace mpc::data::vision {
namespace {

using internal::Box;
using internal::Extents;

/// Errors: an extent that is no picture's, and types other than u8 and f32.
absl::StatusOr<Extents> ErasedExtents(const Tensor& image, bool is_hwc) {
  absl::StatusOr<Extents> extents = internal::PixelExtentsOf(image, "RandomErasing");
  if (!extents.ok() || image.rank() == 2) return extents;
  const auto may_be_channels = [](std::int64_t extent) { return extent == 1 || extent == 3 || extent == 4; };
  const std::int64_t given = image.dim(is_hwc ? 2 : 0), other = image.dim(is_hwc ? 0 : 2);
  if (!may_be_channels(given) && may_be_channels(other)) {
    return absl::InvalidArgumentError(absl::StrCat("RandomErasing: ", image.spec().ToString(), " has ", given,
                                                   " channels with is_hwc = ", is_hwc ? "true" : "false", ", and ",
                                                   other, " with is_hwc = ", is_hwc ? "false" : "true"));
  }
  if (is_hwc) return extents;
  return Extents{.height = image.dim(1), .width = image.dim(2), .channels = image.dim(0)};
}

bool IsLevel(float value) { return value >= 0 && value <= 255 && value == std::floor(value); }

/// A value for each channel.
absl::StatusOr<std::vector<float>> ValuesOf(const std::vector<float>& value, const Extents& extents, DType dtype) {
  const auto channels = static_cast<std::size_t>(extents.channels);
  if (value.size() != 1 && value.size() != channels) {
    return absl::InvalidArgumentError(absl::StrCat("RandomErasing: value has one number or one for each of ", channels,
                                                   " channels; got ", value.size()));
  }
  for (const float number : value) {
    if (dtype == DType::kU8 && !IsLevel(number)) {
      return absl::InvalidArgumentError(
          absl::StrCat("RandomErasing: values of u8 pictures are whole numbers from 0 to 255, got {",
                       absl::StrJoin(value, ", "), "}"));
    }
  }
  return value.size() == channels ? value : std::vector<float>(channels, value[0]);
}

template <typename T>
Tensor Erased(const Tensor& image, const Extents& extents, bool is_hwc, const Box& box,
              const std::vector<float>& values) {
  std::vector<T> pixels(image.data<T>().begin(), image.data<T>().end());
  const std::int64_t channel_stride = is_hwc ? 1 : extents.pixels(), pixel_stride = is_hwc ? extents.channels : 1;
  for (std::int64_t y = box.top; y < box.top + box.height; ++y) {
    for (std::int64_t x = box.left; x < box.left + box.width; ++x) {
      T* const pixel = &pixels[static_cast<std::size_t>((y * extents.width + x) * pixel_stride)];
      for (std::int64_t c = 0; c < extents.channels; ++c) {
        pixel[c * channel_stride] = static_cast<T>(values[static_cast<std::size_t>(c)]);
      }
    }
  }
  return Tensor::From(pixels, image.shape());
}

}  // namespace

absl::StatusOr<Tensor> RandomErasing::operator()(const Tensor& image, const RowPosition& position) const {
  const internal::PartRanges ranges{options_.scale, options_.ratio, options_.max_attempts};
  if (absl::Status status = internal::CheckRanges(ranges, "RandomErasing"); !status.ok()) return status;
  const absl::StatusOr<Extents> extents = ErasedExtents(image, options_.is_hwc);
  if (!extents.ok()) return extents.status();
  const absl::StatusOr<std::vector<float>> values = ValuesOf(options_.value, *extents, image.dtype());
  if (!values.ok()) return values.status();
  internal::Draws draws(internal::DrawStream::kErasing, options_.seed, position);
  const absl::StatusOr<bool> is_erased = internal::Happens(options_.prob, draws, "RandomErasing");
  if (!is_erased.ok()) return is_erased.status();
  const std::optional<Box> box = *is_erased ? internal::DrawPart(*extents, ranges, draws) : std::nullopt;
  if (!box) return image;
  return image.dtype() == DType::kU8 ? Erased<std::uint8_t>(image, *extents, options_.is_hwc, *box, *values)
                                     : Erased<float>(image, *extents, options_.is_hwc, *box, *values);
}

}  // namespace mpc::data::vision
